//! Opens a trace: is it whole, is it one, which version, which columns and layers.

use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::reader::Length;

use crate::error::{Damage, Error, Place, shown};
use crate::names::Names;
use crate::op::Layer;
use crate::order::Ordered;
use crate::parquet::layers::layers_of_rows;
use crate::parquet::meta;
use crate::parquet::pread::PartFile;
use crate::parquet::read::{Opened, ParquetReader, guarded};
use crate::parquet::schema::{At, SCHEMA_VERSION, leaves_of};
use crate::reader::{LayerChoice, ReadOptions, Reader};
use crate::source::SourceInfo;

/// Shortest Parquet file: both magic words and the footer's length.
const FILE_BYTES_MIN: u64 = 12;

const MAGIC: &[u8] = b"PAR1";

/// A writer gathers no more than half of this between two footers.
const CUT_OFF_BYTES_MAX: u64 = 64 << 20;

/// The word at a footer's end hardly ever occurs in rows.
const FOOTERS_TRIED: usize = 64;

/// Opens a trace.
///
/// # Errors
/// When it is cut off, is Parquet but no trace, has a newer schema, or lacks the layer asked for.
pub fn open(
    file: File,
    path: String,
    format: &'static str,
    options: &ReadOptions,
) -> Result<Box<dyn Reader>, Error> {
    let file = PartFile::new(file).map_err(|source| Error::Open {
        path: path.clone(),
        source,
    })?;
    let (file, cut_off_bytes) = up_to_a_footer(file, &path)?;
    let library = |source| Error::Parquet {
        path: path.clone(),
        source,
    };
    let metadata =
        guarded(|| ParquetMetaDataReader::new().parse_and_finish(&file)).map_err(library)?;
    let mut info = SourceInfo {
        path: path.clone(),
        format,
        verified: true,
        ..SourceInfo::default()
    };
    let mut names = Names::default();
    let no_pairs: Vec<KeyValue> = Vec::new();
    let pairs = metadata
        .file_metadata()
        .key_value_metadata()
        .unwrap_or(&no_pairs);
    let said = meta::read(pairs, &mut info, &mut names);
    if cut_off_bytes > 0 {
        info.counts.skipped_bytes += cut_off_bytes;
        info.note("the recording was cut off: read up to its last whole part");
    }
    check_version(said.schema.as_deref(), &mut info)?;
    let schema = metadata.file_metadata().schema_descr();
    let leaves = leaves_of(schema).map_err(|(found, expected)| Error::NoTrace {
        path: path.clone(),
        found,
        expected,
    })?;
    let metadata = Arc::new(metadata);
    info.layers = said
        .layers
        .unwrap_or_else(|| layers_of_rows(&file, &metadata, leaves[At::Layer as usize]));
    let takes = layers_taken(options.layer, &info)?;
    let progress = options.progress.clone();
    let opened = Opened {
        file,
        metadata,
        leaves,
        columns: options.columns,
        takes,
        progress,
    };
    let reader = ParquetReader::new(opened, names, info);
    Ok(if said.in_order {
        Box::new(reader)
    } else {
        Box::new(Ordered::new(Box::new(reader)))
    })
}

/// A Parquet file says at its end where everything is. A recording that was killed while it wrote says so before: the part
/// up to there, and how many bytes are behind it.
pub(super) fn up_to_a_footer(file: PartFile, path: &str) -> Result<(PartFile, u64), Error> {
    let read = |source| Error::Open {
        path: path.to_owned(),
        source,
    };
    let tail = file.tail(4).map_err(read)?;
    if file.len() >= FILE_BYTES_MIN && tail == MAGIC {
        return Ok((file, 0));
    }
    if let Some(end) = last_footer(&file).map_err(read)? {
        let behind = file.len() - end;
        return Ok((file.up_to(end), behind));
    }
    let damage = Damage {
        place: Place::Byte(file.len().saturating_sub(4)),
        found: shown(&tail),
        expected:
            "`PAR1` after the footer: recording or copying was cut off, and without its footer no row of a \
                   Parquet file can be found; record or copy it again"
                .to_owned(),
    };
    Err(Error::Malformed {
        path: path.to_owned(),
        damage,
    })
}

/// The end of the last footer within the file; `None` if no footer is near its end.
fn last_footer(file: &PartFile) -> io::Result<Option<u64>> {
    let tail = file.tail(CUT_OFF_BYTES_MAX)?;
    let begins = file.len() - tail.len() as u64;
    for at in memchr::memmem::rfind_iter(&tail, MAGIC).take(FOOTERS_TRIED) {
        let end = begins + (at + MAGIC.len()) as u64;
        let part = file.clone().up_to(end);
        let is_footer = end >= FILE_BYTES_MIN
            && guarded(|| ParquetMetaDataReader::new().parse_and_finish(&part)).is_ok();
        if is_footer {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

fn check_version(schema: Option<&str>, info: &mut SourceInfo) -> Result<(), Error> {
    match schema.map(str::parse::<u32>) {
        Some(Ok(1..=SCHEMA_VERSION)) => Ok(()),
        None => {
            info.note(format!(
                "no {} in the metadata: taken as version {SCHEMA_VERSION}",
                meta::SCHEMA
            ));
            Ok(())
        }
        Some(_) => Err(Error::NewerSchema {
            path: info.path.clone(),
            found: schema.unwrap_or_default().escape_debug().take(20).collect(),
            expected: SCHEMA_VERSION,
        }),
    }
}

fn layers_taken(choice: LayerChoice, info: &SourceInfo) -> Result<[bool; Layer::ALL.len()], Error> {
    let lowest = info.layers.iter().max().copied().unwrap_or(Layer::Request);
    if let LayerChoice::Only(asked) = choice
        && !info.layers.contains(&asked)
    {
        let present = info
            .layers
            .iter()
            .map(|layer| layer.word())
            .collect::<Vec<_>>()
            .join(", ");
        return Err(Error::NoLayer {
            path: info.path.clone(),
            asked,
            present,
        });
    }
    // The lowest of each device is all that it has.
    let all = choice == LayerChoice::Lowest && info.one_layer_a_device;
    Ok(Layer::ALL.map(|layer| all || choice.takes(layer, lowest)))
}
