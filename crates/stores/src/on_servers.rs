//! Gives drivers of servers the methods in which they do not differ. They are written into the `impl` of each, and are no
//! default: a store that is made of others must answer otherwise.

/// Writes the methods of a [`Store`](kvdyno_core::store::Store) whose records lie on servers and nowhere before them.
macro_rules! kept_on_servers {
    () => {
        fn folder(&self) -> Option<&std::path::Path> {
            None
        }

        fn behind(&self) -> Option<kvdyno_core::store::BoxedStore> {
            None
        }

        fn work_since(&self, _: std::time::SystemTime) -> Vec<kvdyno_core::store::Work> {
            Vec::new()
        }
    };
}

/// Writes the methods of a [`Store`](kvdyno_core::store::Store) whose driver can ask neither for a certain copy of a
/// record nor for the servers that have one.
macro_rules! copies_not_shown {
    () => {
        fn stronger(&self) -> Vec<(kvdyno_core::store::BoxedStore, String)> {
            Vec::new()
        }

        async fn copies(
            &self,
        ) -> kvdyno_core::store::Answer<kvdyno_core::store::Copies<kvdyno_core::store::BoxedStore>>
        {
            let why = "the driver has no way to read one";
            Ok(kvdyno_core::store::Copies::NotShown(why.to_owned()))
        }

        async fn held_by(&self, _: &str, _: &[Vec<u8>]) -> kvdyno_core::store::Answer<u64> {
            let missing = "a way to ask which server has a record";
            Err(kvdyno_core::store::RequestError::unsupported(missing))
        }
    };
}

pub(crate) use {copies_not_shown, kept_on_servers};
