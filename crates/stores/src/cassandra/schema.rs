//! The keyspace and the table: found and checked, or made. Nothing is ever dropped or altered.

use std::collections::HashMap;
use std::time::Duration;

use kvdyno_core::store::{Answer, ErrorClass, RequestError};
use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::statement::Statement;

use super::errors::{self, Effect};
use super::options::CassandraOptions;
use super::replication::Replication;

/// Longest time that making a keyspace or a table may take: on a loaded machine all nodes need
/// seconds to learn of it.
const MAKING: Duration = Duration::from_secs(60);

/// Copies of each record in a new keyspace, where there are so many nodes.
const USUAL_COPIES: u32 = 3;

/// Keyspace and table, as the cluster describes them.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    /// Copies of each record; `None` if the keyspace keeps them in a way that is not known here.
    pub replication: Option<Replication>,
    /// True if writes go to the commit log.
    pub durable_writes: bool,
    /// Columns for fields.
    pub fields: u16,
    /// The table's `read_repair`, where the server has such a setting.
    pub read_repair: Option<String>,
    /// Compression of the table on disk.
    pub compression: Option<String>,
}

/// Finds keyspace and table, or makes them.
pub(super) async fn ensure(session: &Session, options: &CassandraOptions) -> Answer<Schema> {
    let (replication, durable_writes) = match keyspace(session, options).await? {
        Some(found) => found,
        None => {
            make(session, &new_keyspace(session, options)).await?;
            keyspace(session, options).await?.ok_or_else(|| vanished("keyspace"))?
        }
    };
    let replication = Replication::parse(&replication);
    let copies = replication.as_ref().map(Replication::total);
    if let (Some(wanted), Some(found)) = (options.replication, copies)
        && wanted != found
    {
        return Err(rejected(format!(
            "keyspace {} keeps {found} copies of each record, not {wanted}: name another keyspace, \
             or leave `replication` out",
            options.keyspace
        )));
    }
    let columns = match columns(session, options).await? {
        found if !found.is_empty() => found,
        _ => {
            make(session, &new_table(options)).await?;
            columns(session, options).await?
        }
    };
    let fields = check(options, &columns)?;
    let (read_repair, compression) = table(session, options).await?;
    Ok(Schema { replication, durable_writes, fields, read_repair, compression })
}

async fn make(session: &Session, text: &str) -> Answer<()> {
    let mut statement = Statement::new(text);
    statement.set_request_timeout(Some(MAKING));
    let made = session.query_unpaged(statement, ()).await;
    made.map(drop).map_err(|error| errors::request_error(&error, Effect::Read))
}

fn new_keyspace(session: &Session, options: &CassandraOptions) -> String {
    let copies = options.replication.unwrap_or_else(|| {
        let cluster = session.get_cluster_state();
        usual_copies(cluster.get_nodes_info().iter().map(|node| node.datacenter.as_deref()))
    });
    // Means so many copies in each datacenter.
    format!(
        "CREATE KEYSPACE IF NOT EXISTS \"{}\" WITH replication = \
         {{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}",
        options.keyspace
    )
}

/// Returns how many copies a new keyspace has: as many as the smallest datacenter has nodes, up to the usual number. A node
/// whose datacenter is not known yet is no datacenter of its own, in which one copy is the most.
fn usual_copies<'a>(datacenters: impl Iterator<Item = Option<&'a str>>) -> u32 {
    let mut nodes: HashMap<&str, u32> = HashMap::new();
    for datacenter in datacenters.flatten() {
        *nodes.entry(datacenter).or_default() += 1;
    }
    nodes.into_values().min().unwrap_or(1).min(USUAL_COPIES)
}

fn new_table(options: &CassandraOptions) -> String {
    let fields: String = (0..options.new_fields()).map(|n| format!(", f{n} blob")).collect();
    let table = options.full_table();
    format!("CREATE TABLE IF NOT EXISTS {table} (key blob PRIMARY KEY, value blob{fields})")
}

/// Returns the number of columns for fields of a table; an error if kvdyno cannot use it.
fn check(options: &CassandraOptions, columns: &[(String, String, String)]) -> Answer<u16> {
    let is = |name: &str, kind: &str| {
        columns.iter().any(|(n, k, t)| n == name && k == kind && t == "blob")
    };
    let keys = columns.iter().filter(|(_, kind, _)| kind != "regular" && kind != "static").count();
    let table = options.full_table();
    if !is("key", "partition_key") || !is("value", "regular") || keys != 1 {
        return Err(rejected(format!(
            "table {table} is another's: kvdyno needs `key blob PRIMARY KEY, value blob`; name \
             another table (`table=NAME`), and it is made"
        )));
    }
    let fields = (0..u16::MAX).take_while(|n| is(&format!("f{n}"), "regular")).count() as u16;
    match options.fields {
        Some(wanted) if wanted > fields => Err(rejected(format!(
            "table {table} has columns for {fields} fields, not {wanted}: name another table \
             (`table=NAME`), and it is made"
        ))),
        _ => Ok(fields),
    }
}

fn rejected(message: String) -> RequestError {
    RequestError::failed(ErrorClass::Rejected, message)
}

fn vanished(what: &str) -> RequestError {
    RequestError::failed(
        ErrorClass::Unavailable,
        format!("another program removed the {what} meanwhile; run again"),
    )
}

/// Reads replication and durable writes of the keyspace; `None` if there is none.
async fn keyspace(
    session: &Session,
    options: &CassandraOptions,
) -> Answer<Option<(HashMap<String, String>, bool)>> {
    let text = "SELECT replication, durable_writes FROM system_schema.keyspaces \
                WHERE keyspace_name = ?";
    let mut found = rows(session, text.into(), (&options.keyspace,)).await?;
    Ok(found.pop())
}

/// Reads the columns of the table as (name, kind, type); none if there is no table.
async fn columns(
    session: &Session,
    options: &CassandraOptions,
) -> Answer<Vec<(String, String, String)>> {
    let text = "SELECT column_name, kind, type FROM system_schema.columns \
                WHERE keyspace_name = ? AND table_name = ?";
    rows(session, text.into(), (&options.keyspace, &options.table)).await
}

/// Reads read repair and compression of the table.
async fn table(
    session: &Session,
    options: &CassandraOptions,
) -> Answer<(Option<String>, Option<String>)> {
    let names = (&options.keyspace, &options.table);
    let text = "SELECT compression FROM system_schema.tables \
                WHERE keyspace_name = ? AND table_name = ?";
    let found: Vec<(Option<HashMap<String, String>>,)> = rows(session, text.into(), names).await?;
    let compression = found.into_iter().next().and_then(|(compression,)| compression);
    let class = compression.map(|mut settings| {
        let class = settings.remove("class").unwrap_or_else(|| "none".to_owned());
        class.rsplit('.').next().unwrap_or_default().to_owned()
    });
    // Cassandra has this column from 4.0 on, ScyllaDB has not.
    let text = "SELECT read_repair FROM system_schema.tables \
                WHERE keyspace_name = ? AND table_name = ?";
    let asked = session.query_unpaged(text, names).await;
    let unknown = RequestAttemptError::DbError(DbError::Invalid, String::new());
    let repair: Vec<(Option<String>,)> = match asked {
        Err(ExecutionError::LastAttemptError(error))
        | Err(ExecutionError::PrepareError(scylla::errors::PrepareError::AllAttemptsFailed {
            first_attempt: error,
        })) if std::mem::discriminant(&error) == std::mem::discriminant(&unknown) => Vec::new(),
        asked => decode(asked.map_err(|error| errors::request_error(&error, Effect::Read))?)?,
    };
    Ok((repair.into_iter().next().and_then(|(repair,)| repair), class))
}

/// Asks and decodes all rows of the answer.
pub(super) async fn rows<R>(
    session: &Session,
    statement: Statement,
    values: impl scylla::serialize::row::SerializeRow,
) -> Answer<Vec<R>>
where
    R: for<'f, 'm> DeserializeRow<'f, 'm>,
{
    let asked = session.query_unpaged(statement, values).await;
    decode(asked.map_err(|error| errors::request_error(&error, Effect::Read))?)
}

fn decode<R>(result: scylla::response::query_result::QueryResult) -> Answer<Vec<R>>
where
    R: for<'f, 'm> DeserializeRow<'f, 'm>,
{
    let protocol = |error: &dyn std::fmt::Display| {
        RequestError::failed(
            ErrorClass::Protocol,
            format!("a system table has an unknown layout: {error}"),
        )
    };
    let result = result.into_rows_result().map_err(|error| protocol(&error))?;
    let rows = result.rows::<R>().map_err(|error| protocol(&error))?;
    rows.collect::<Result<_, _>>().map_err(|error| protocol(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;

    fn options(text: &str) -> CassandraOptions {
        CassandraOptions::take(&mut StoreUrl::parse(text).unwrap()).unwrap()
    }

    fn columns(names: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        let own = |(a, b, c): &(&str, &str, &str)| (a.to_string(), b.to_string(), c.to_string());
        names.iter().map(own).collect()
    }

    #[test]
    fn a_table_of_kvdynos_own_passes_and_anothers_does_not() {
        let own = [
            ("f0", "regular", "blob"),
            ("f1", "regular", "blob"),
            ("key", "partition_key", "blob"),
            ("value", "regular", "blob"),
        ];
        let plain = options("cassandra://h");
        assert_eq!(check(&plain, &columns(&own)), Ok(2));
        assert_eq!(check(&plain, &columns(&own[2..])), Ok(0));
        let three = check(&options("cassandra://h?fields=3"), &columns(&own)).unwrap_err();
        assert!(three.message.contains("for 2 fields, not 3"), "{three}");
        for other in [
            columns(&own[..3]),
            columns(&[("key", "partition_key", "text"), ("value", "regular", "blob")]),
            columns(&[own[2], own[3], ("day", "clustering", "date")]),
        ] {
            let refused = check(&plain, &other).unwrap_err();
            assert!(refused.message.contains("table=NAME"), "{refused}");
        }
    }

    #[test]
    fn a_node_of_an_unknown_datacenter_does_not_lessen_the_copies() {
        let (a, b) = (Some("a"), Some("b"));
        for (datacenters, copies) in [
            (&[a][..], 1),
            (&[a, a, a, a], 3),
            (&[a, a, None], 2),
            (&[a, a, a, b, b], 2),
            (&[None], 1),
        ] {
            assert_eq!(usual_copies(datacenters.iter().copied()), copies, "{datacenters:?}");
        }
    }

    #[test]
    fn a_new_table_has_the_columns_asked_for() {
        assert_eq!(
            new_table(&options("cassandra://h/ks?fields=2")),
            "CREATE TABLE IF NOT EXISTS \"ks\".\"records\" (key blob PRIMARY KEY, value blob, \
             f0 blob, f1 blob)"
        );
        assert!(!new_table(&options("cassandra://h?fields=0")).contains("f0"));
    }
}
