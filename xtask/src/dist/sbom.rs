//! The bill of materials of a binary, as CycloneDX: scanners look up advisories for what it lists.

use serde_json::{Value, json};

use super::VERSION;
use super::shipped::{Shipped, ShippedCrate};

/// Writes the bill of materials.
///
/// # Panics
/// Never: a value of strings becomes text.
pub fn sbom(shipped: &Shipped) -> String {
    let dependencies = shipped.dependencies.iter().map(|(id, needed)| {
        let needed: Vec<&String> = needed.iter().collect();
        json!({ "ref": id, "dependsOn": needed })
    });
    let root = shipped.crates.iter().find(|one| one.name == "kvdyno");
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root.map(|root| &root.id),
                "name": "kvdyno",
                "version": VERSION,
            },
        },
        "components": shipped.crates.iter().filter(|one| one.name != "kvdyno")
            .map(|one| component(shipped, one)).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&bill).expect("a value becomes text") + "\n"
}

fn component(shipped: &Shipped, one: &ShippedCrate) -> Value {
    let ShippedCrate { id, name, version, .. } = one;
    let mut component = json!({
        "type": "library",
        "bom-ref": id,
        "name": name,
        "version": version,
        "scope": "required",
    });
    if let Some(license) = &one.license {
        // The old form of `OR`, which SPDX does not know.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if one.is_of_others() {
        component["purl"] = json!(format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")));
    }
    if let Some(sum) = shipped.checksums.get(&(name.clone(), version.clone())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_lists_what_is_in_with_sums_and_what_needs_what() {
        let shipped = Shipped::read("", "x86_64-unknown-linux-gnu").unwrap();
        let bill: Value = serde_json::from_str(&sbom(&shipped)).unwrap();
        let components = bill["components"].as_array().unwrap();
        assert_eq!(components.len() + 1, shipped.crates.len());
        let fjall = components.iter().find(|one| one["name"] == "fjall").unwrap();
        assert!(fjall["purl"].as_str().unwrap().starts_with("pkg:cargo/fjall@3."), "{fjall}");
        assert_eq!(fjall["hashes"][0]["content"].as_str().unwrap().len(), 64);
        let refs: BTreeSet<_> = components.iter().map(|one| one["bom-ref"].as_str()).collect();
        assert_eq!(refs.len(), components.len());
        let edges = bill["dependencies"].as_array().unwrap();
        assert_eq!(edges.len(), shipped.crates.len());
    }
}
