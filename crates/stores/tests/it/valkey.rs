//! The Redis driver against a real Valkey.

use crate::harness::run;
use kvdyno_core::store::{Durability, Promise, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::redis::RedisStore;
use kvdyno_testbed::{Deployment, install, registry};

#[test]
fn it_conforms_and_is_called_by_its_name() {
    let kind = registry::kind("valkey").expect("it is registered");
    install::install(kind.software, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let testbed = Deployment::up("valkey?persistence=aof-always");
    let testbed = testbed.unwrap_or_else(|error| panic!("{error}"));
    let open = |url: &str| RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap();
    let store = open(testbed.url());
    conformance(&store).unwrap_or_else(|failure| panic!("{failure}"));
    let profile = run(async { store.profile().await.unwrap() });
    assert_eq!(profile.store, "valkey");
    assert!(profile.version.is_some_and(|version| version.starts_with("9.")));
    assert_eq!(profile.durability, Promise::checked(Durability::PowerLoss));
    let sharded = open(&testbed.url().replace("valkey://", "valkey+sharded://"));
    conformance(&sharded).unwrap_or_else(|failure| panic!("{failure}"));
}
