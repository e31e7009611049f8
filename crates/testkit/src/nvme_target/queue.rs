//! One connection: one queue of a controller.

use std::collections::HashMap;
use std::io::{BufReader, BufWriter, Write};
use std::net::TcpStream;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::command::{Answer, DataLocation, NvmeCommand, Status, admin, fabrics, io};
use super::drive::{IDENTIFY_BYTES, TRANSFER_BYTES_MAX, VERSION};
use super::pdu::{self, FromHost, u16_at};
use super::{QUEUE_ENTRIES, Subsystem, TargetError};

/// Length of the data of Connect.
const CONNECT_BYTES: usize = 1024;
/// The one namespace.
const NAMESPACE_ID: u32 = 1;

/// Offsets of properties.
mod property {
    pub(super) const CAP: u32 = 0x00;
    pub(super) const VS: u32 = 0x08;
    pub(super) const CC: u32 = 0x14;
    pub(super) const CSTS: u32 = 0x1c;
}

/// Serves a connection until its end.
///
/// # Errors
/// When the connection breaks, or the host breaks the rules of the transport.
pub(super) fn serve(stream: &TcpStream, subsystem: &Subsystem) -> Result<(), TargetError> {
    stream.set_nodelay(true)?;
    let (mut from, to) = (BufReader::new(stream), BufWriter::new(stream));
    let mut queue = Queue {
        subsystem,
        to,
        is_open: false,
        connected: None,
        configuration: 0,
        head: 0,
        entries: 1,
        awaited: HashMap::new(),
    };
    while let Some(pdu) = pdu::read(&mut from)? {
        queue.take(pdu)?;
        queue.to.flush()?;
    }
    Ok(())
}

/// The queue and controller of the connection, from a Connect.
#[derive(Clone, Copy)]
struct Connected {
    controller: u16,
    queue: u16,
}

/// A command whose data were asked for.
struct Awaited {
    command: NvmeCommand,
    data: Vec<u8>,
    received: usize,
}

struct Queue<'a, W: Write> {
    subsystem: &'a Subsystem,
    to: W,
    /// Whether ICReq came.
    is_open: bool,
    connected: Option<Connected>,
    /// CC, of the admin queue.
    configuration: u32,
    /// Entries taken from the submission queue, modulo its length.
    head: u16,
    entries: u16,
    /// By command ID, which is the tag of its R2T as well.
    awaited: HashMap<u16, Awaited>,
}

impl<W: Write> Queue<'_, W> {
    fn take(&mut self, pdu: FromHost) -> Result<(), TargetError> {
        match pdu {
            FromHost::InitConnection {
                version: 0,
                data_alignment: 0,
                digests: 0,
            } if !self.is_open => {
                self.is_open = true;
                Ok(pdu::write_ic_response(&mut self.to)?)
            }
            FromHost::InitConnection { .. } => Err(TargetError::Order {
                what: "ICReq came twice, or asks for digests or padding",
            }),
            FromHost::Terminate { status } => Err(TargetError::Terminated { status }),
            _ if !self.is_open => Err(TargetError::Order {
                what: "a PDU came before ICReq",
            }),
            FromHost::Command { entry, data } => self.take_command(NvmeCommand::new(entry), &data),
            FromHost::Data {
                command_id,
                tag,
                offset,
                data,
            } => self.take_data(command_id, tag, offset as usize, &data),
        }
    }

    fn take_command(&mut self, command: NvmeCommand, data: &[u8]) -> Result<(), TargetError> {
        self.head = (self.head + 1) % self.entries;
        let len = command.data_len();
        // Some that may have data have none, as Set Features.
        if !command.takes_data() || len == 0 || command.place() == Some(DataLocation::Capsule) {
            return self.answer(&command, data);
        }
        if command.place().is_none() || len > TRANSFER_BYTES_MAX {
            return self.complete(&command, Answer::Failed(Status::INVALID_FIELD));
        }
        let awaited = Awaited {
            command,
            data: vec![0; len as usize],
            received: 0,
        };
        if self.awaited.insert(command.id(), awaited).is_some() {
            return Err(TargetError::Order {
                what: "a command has the ID of one that waits for data",
            });
        }
        Ok(pdu::write_ready(
            &mut self.to,
            command.id(),
            command.id(),
            len,
        )?)
    }

    fn take_data(
        &mut self,
        id: u16,
        tag: u16,
        offset: usize,
        data: &[u8],
    ) -> Result<(), TargetError> {
        let awaited = self
            .awaited
            .get_mut(&id)
            .filter(|awaited| tag == id && awaited.received == offset);
        let room = awaited.and_then(|awaited| {
            let room = awaited
                .data
                .get_mut(offset..offset.checked_add(data.len())?)?;
            room.copy_from_slice(data);
            awaited.received += data.len();
            Some(awaited.received == awaited.data.len())
        });
        match room {
            None => Err(TargetError::Order {
                what: "data came that nobody had asked for",
            }),
            Some(false) => Ok(()),
            Some(true) => match self.awaited.remove(&id) {
                Some(awaited) => self.answer(&awaited.command, &awaited.data),
                None => Ok(()),
            },
        }
    }

    fn answer(&mut self, command: &NvmeCommand, data: &[u8]) -> Result<(), TargetError> {
        let answer = match (command.opcode(), self.connected) {
            (admin::FABRICS, _) => self.fabrics(command, data),
            (_, None) => Answer::Failed(Status::SEQUENCE_ERROR),
            (
                _,
                Some(Connected {
                    queue: 0,
                    controller,
                }),
            ) => self.admin(command, controller),
            (_, Some(_)) => self.io(command, data),
        };
        self.complete(command, answer)
    }

    fn complete(&mut self, command: &NvmeCommand, answer: Answer) -> Result<(), TargetError> {
        let (result, status) = match answer {
            Answer::Never => return Ok(()),
            Answer::Failed(status) => (0, status),
            Answer::Done { result, mut data } => {
                data.truncate(command.data_len() as usize);
                if !data.is_empty() {
                    pdu::write_data(&mut self.to, command.id(), &data)?;
                }
                (result, Status(0))
            }
        };
        let queue = self.connected.map_or(0, |connected| connected.queue);
        let completion = command.completion(queue, self.head, result, status);
        Ok(pdu::write_response(&mut self.to, &completion)?)
    }

    fn fabrics(&mut self, command: &NvmeCommand, data: &[u8]) -> Answer {
        match (command.fabrics_type(), self.connected) {
            (fabrics::CONNECT, None) => self.connect(command, data),
            (fabrics::PROPERTY_GET, Some(Connected { queue: 0, .. })) => {
                self.property(command.dword(11))
            }
            (fabrics::PROPERTY_SET, Some(Connected { queue: 0, .. })) => {
                if command.dword(11) != property::CC {
                    return Answer::Failed(Status::INVALID_FIELD);
                }
                self.configuration = command.dword(12);
                Answer::done()
            }
            (fabrics::CONNECT | fabrics::PROPERTY_GET | fabrics::PROPERTY_SET, _) => {
                Answer::Failed(Status::SEQUENCE_ERROR)
            }
            _ => Answer::Failed(Status::INVALID_FIELD),
        }
    }

    fn connect(&mut self, command: &NvmeCommand, data: &[u8]) -> Answer {
        let (queue, entries) = (
            (command.dword(10) >> 16) as u16,
            (command.dword(11) & 0xffff) as u16,
        );
        let subsystem = data
            .get(256..512)
            .map(|name| name.split(|byte| *byte == 0).next().unwrap_or(name));
        if data.len() != CONNECT_BYTES
            || subsystem != Some(self.subsystem.name.as_bytes())
            || entries == 0
            || entries >= QUEUE_ENTRIES
        {
            return Answer::Failed(Status::CONNECT_INVALID);
        }
        let next = &self.subsystem.next_controller;
        let controller = match (queue, u16_at(data, 16)) {
            // FFFFh: any controller.
            (0, 0xffff) => next.fetch_add(1, Ordering::Relaxed),
            (1.., there) if (1..next.load(Ordering::Relaxed)).contains(&there) => there,
            _ => return Answer::Failed(Status::CONNECT_INVALID),
        };
        self.connected = Some(Connected { controller, queue });
        // SQSIZE counts from 0.
        self.entries = entries + 1;
        Answer::result(controller.into())
    }

    fn property(&self, offset: u32) -> Answer {
        Answer::result(match offset {
            // MQES, CQR, TO of 10 s, the NVM command set.
            property::CAP => u64::from(QUEUE_ENTRIES - 1) | 1 << 16 | 20 << 24 | 1 << 37,
            property::VS => VERSION.into(),
            property::CC => self.configuration.into(),
            // RDY follows EN; SHST says complete once SHN asked for it.
            property::CSTS => {
                let is_shut_down = self.configuration >> 14 & 3 != 0;
                u64::from(self.configuration & 1) | if is_shut_down { 2 << 2 } else { 0 }
            }
            _ => return Answer::Failed(Status::INVALID_FIELD),
        })
    }

    fn admin(&self, command: &NvmeCommand, controller: u16) -> Answer {
        match command.opcode() {
            admin::IDENTIFY => self.identify(command, controller),
            // All logs are empty.
            admin::GET_LOG_PAGE => {
                Answer::data(vec![0; command.data_len().min(TRANSFER_BYTES_MAX) as usize])
            }
            admin::SET_FEATURES => match command.dword(10) & 0xff {
                // Number of Queues: as many as asked for.
                0x07 => Answer::result(command.dword(11).into()),
                // Asynchronous Event Configuration.
                0x0b => Answer::done(),
                _ => Answer::Failed(Status::INVALID_FIELD),
            },
            admin::ASYNC_EVENT_REQUEST => Answer::Never,
            admin::KEEP_ALIVE => Answer::done(),
            _ => Answer::Failed(Status::INVALID_OPCODE),
        }
    }

    /// By CNS.
    fn identify(&self, command: &NvmeCommand, controller: u16) -> Answer {
        let drive = &self.subsystem.drive;
        let id = command.namespace_id();
        match command.dword(10) & 0xff {
            0x00 | 0x03 if id != NAMESPACE_ID => Answer::Failed(Status::INVALID_NAMESPACE),
            0x00 => Answer::data(drive.identify_namespace().to_vec()),
            0x01 => Answer::data(
                drive
                    .identify_controller(controller, &self.subsystem.name)
                    .to_vec(),
            ),
            // Namespaces in use, of IDs above this one.
            0x02 => {
                let mut bytes = vec![0; IDENTIFY_BYTES];
                if id < NAMESPACE_ID {
                    bytes[..4].copy_from_slice(&NAMESPACE_ID.to_le_bytes());
                }
                Answer::data(bytes)
            }
            // Descriptors: a UUID (type 3, 16 bytes) that is its own.
            0x03 => {
                let mut bytes = vec![0; IDENTIFY_BYTES];
                (bytes[0], bytes[1]) = (3, 16);
                bytes[4..20].copy_from_slice(&self.uuid());
                Answer::data(bytes)
            }
            _ => Answer::Failed(Status::INVALID_FIELD),
        }
    }

    /// From the name of the subsystem, and marked as made by oneself (version 8).
    fn uuid(&self) -> [u8; 16] {
        let mut state = self
            .subsystem
            .name
            .bytes()
            .fold(0_u64, |state, byte| state.rotate_left(7) ^ u64::from(byte));
        let mut uuid = [0; 16];
        for half in uuid.chunks_mut(8) {
            half.copy_from_slice(&crate::rng::split_mix(&mut state).to_le_bytes());
        }
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        uuid
    }

    fn io(&self, command: &NvmeCommand, data: &[u8]) -> Answer {
        let opcode = command.opcode();
        if command.namespace_id() != NAMESPACE_ID {
            return Answer::Failed(Status::INVALID_NAMESPACE);
        }
        if opcode == io::FLUSH {
            return Answer::done();
        }
        if ![io::READ, io::WRITE].contains(&opcode) {
            return Answer::Failed(Status::INVALID_OPCODE);
        }
        let block = u64::from(self.subsystem.drive.lba_bytes);
        // NLB counts from 0.
        let len = (u64::from(command.dword(12) & 0xffff) + 1) * block;
        if len != u64::from(command.data_len()) || len > u64::from(TRANSFER_BYTES_MAX) {
            return Answer::Failed(Status::DATA_LENGTH_INVALID);
        }
        let start = command.two_dwords(10).checked_mul(block);
        let mut namespace = self
            .subsystem
            .namespace
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(start) = start.filter(|start| namespace.has(*start, len)) else {
            return Answer::Failed(Status::LBA_OUT_OF_RANGE);
        };
        if opcode == io::READ {
            return Answer::data(namespace.read(start, len as usize));
        }
        if data.len() as u64 != len {
            return Answer::Failed(Status::DATA_LENGTH_INVALID);
        }
        namespace.write(start, data);
        Answer::done()
    }
}
