//! Inventories as CSV and JSON, damaged ones, and attributes in paths.

use plumb_fleet::{Inventory, attributes_of_path};

fn of_host<'a>(inventory: &'a Inventory, host: &str, name: &str) -> Option<&'a str> {
    inventory.host(host)?.own.get(name).map(String::as_str)
}

fn of_device<'a>(inventory: &'a Inventory, host: &str, device: &str) -> Option<&'a str> {
    let device = inventory.host(host)?.devices.get(device)?;
    device.get("model").map(String::as_str)
}

#[test]
fn csv_and_json_are_the_same() {
    let csv = "\u{feff}host,image,device,model\r\n\
               db1,web-3,,\r\n\
               \r\n\
               db1,,sda,\"Say \"\"AX\"\", 20\nnew\"\r\n\
               db2, web-4 ,,x";
    let json = r#" [{"host":"db1","image":"web-3","model":null},
        {"host":"db1","device":"sda","model":"Say \"AX\", 20\nnew"},
        {"host":"db2","image":"web-4","model":"x"}]"#;
    let inventory = Inventory::read(csv.as_bytes()).expect("CSV");
    assert_eq!(inventory, Inventory::read(json.as_bytes()).expect("JSON"));
    assert_eq!(inventory.len(), 2);
    assert_eq!(of_host(&inventory, "db1", "image"), Some("web-3"));
    assert_eq!(of_host(&inventory, "db2", "image"), Some("web-4"));
    assert_eq!(of_host(&inventory, "db1", "model"), None);
    assert_eq!(
        of_device(&inventory, "db1", "sda"),
        Some("Say \"AX\", 20\nnew")
    );
    assert_eq!(of_host(&inventory, "db1", "host"), None);
    let numbers = br#"[{"host":"a","rack":7,"is_new":true}]"#;
    let inventory = Inventory::read(numbers).expect("JSON");
    assert_eq!(of_host(&inventory, "a", "rack"), Some("7"));
    assert_eq!(of_host(&inventory, "a", "is_new"), Some("true"));
}

#[test]
fn damage_is_named_with_its_place() {
    let long = format!("host,a\nx,{}\n", "y".repeat(257));
    let wide = format!("host{}\n{}\n", ",a".repeat(64), "x,".repeat(64));
    for (text, place, found) in [
        ("image,rack\nweb,7\n", "line 2", "no host"),
        ("host,rack\na,1\nb\n", "line 3", "1 cell"),
        ("host,rack\na,1\n\na,2\n", "line 4", "host a twice"),
        ("host,rack\n\"a,1\n", "line 2", "a quote"),
        ("host,rack\n\"a\nb\",1\n\"c\"d,1\n", "line 4", "a quote"),
        ("host,a,a\nx,1,2\n", "line 2", "a twice"),
        (long.as_str(), "line 2", "257 bytes"),
        (wide.as_str(), "line 2", "65 fields"),
        ("[{\"rack\":1}]", "object 1", "no host"),
        ("[{\"host\":\"a\",\"rack\":[1]}]", "object 1", "rack"),
        ("[1]", "object 1", "no object"),
        ("[", "", "no JSON"),
    ] {
        let error = Inventory::read(text.as_bytes())
            .expect_err(text)
            .to_string();
        assert!(
            error.contains(place) && error.contains(found),
            "{text}: {error}"
        );
    }
    let error = Inventory::read(b"host\n\xff\n").expect_err("no text");
    assert!(error.to_string().contains("UTF-8"));
    assert!(Inventory::read(b"").is_ok_and(|inventory| inventory.is_empty()));
}

#[test]
fn paths_have_attributes() {
    let inputs = [
        "image=web-3/date=2026-11-01/rack=r7/host=db1/tier=day/a=b.csv",
        "image=web-3/date=2026-11-02/rack=r8/host=db1/x.csv",
        "image=web-3/=x/y=/other/x.csv",
    ];
    let found = attributes_of_path(&inputs.map(str::to_owned));
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        found,
        [("image", "web-3")],
        "a rack that changed is unknown"
    );
}
