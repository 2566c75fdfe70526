//! The statements of a session, each prepared once, and the rows that are bound to them.

use kvdyno_core::store::Put;
use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::{CellOverflowError, RowWriter};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, Statement};

use super::options::CassandraOptions;

/// Longest time to live that Cassandra takes, in seconds: 20 years.
const LONGEST_TTL: u64 = 20 * 365 * 24 * 60 * 60;

/// The statements. Those for records of several fields are absent if the table has no columns for them.
pub(super) struct Statements {
    pub get_value: PreparedStatement,
    pub get_fields: Option<PreparedStatement>,
    pub get_values: PreparedStatement,
    pub get_all_fields: Option<PreparedStatement>,
    pub put_value: PreparedStatement,
    pub put_fields: Option<PreparedStatement>,
    pub delete: PreparedStatement,
    pub get_mark: PreparedStatement,
}

impl Statements {
    pub async fn prepare(
        session: &Session,
        options: &CassandraOptions,
        fields: u16,
    ) -> Result<Statements, PrepareError> {
        let table = options.full_table();
        let columns: Vec<String> = (0..fields).map(|field| format!("f{field}")).collect();
        let columns = columns.join(", ");
        let read = |text: String| prepare(session, text, options.read);
        let write = |text: String| prepare(session, text, options.write);
        let with_fields = fields > 0;
        Ok(Statements {
            get_value: read(format!("SELECT value FROM {table} WHERE key = ?")).await?,
            get_fields: match with_fields {
                true => Some(read(format!("SELECT {columns} FROM {table} WHERE key = ?")).await?),
                false => None,
            },
            get_values: read(format!("SELECT key, value FROM {table} WHERE key IN ?")).await?,
            get_all_fields: match with_fields {
                true => {
                    Some(read(format!("SELECT key, {columns} FROM {table} WHERE key IN ?")).await?)
                }
                false => None,
            },
            put_value: write(insert(&table, "value", 1)).await?,
            put_fields: match with_fields {
                true => Some(write(insert(&table, &columns, fields)).await?),
                false => None,
            },
            delete: write(format!("DELETE FROM {table} USING TIMESTAMP ? WHERE key = ?")).await?,
            get_mark: read(format!("SELECT WRITETIME(value) FROM {table} WHERE key = ?")).await?,
        })
    }
}

/// Returns the `INSERT`, which is an upsert in Cassandra. A time to live of 0 is none.
fn insert(table: &str, columns: &str, count: u16) -> String {
    let marks = ", ?".repeat(usize::from(count));
    format!("INSERT INTO {table} (key, {columns}) VALUES (?{marks}) USING TIMESTAMP ? AND TTL ?")
}

async fn prepare(
    session: &Session,
    text: String,
    consistency: Consistency,
) -> Result<PreparedStatement, PrepareError> {
    let mut statement = Statement::new(text);
    statement.set_consistency(consistency);
    // Each has a timestamp of its own: sent twice it does what it does once. The driver's policy sends
    // only such statements again.
    statement.set_is_idempotent(true);
    let mut prepared = session.prepare(statement).await?;
    // Nobody alters the table, so the answers need not describe their columns each time.
    prepared.set_use_cached_result_metadata(true);
    Ok(prepared)
}

/// Returns the time to live of a put as Cassandra counts: whole seconds, rounded up, at least 1; 0 for none.
pub(super) fn seconds(put: &Put<'_>) -> i32 {
    put.ttl.map_or(0, |ttl| {
        let whole = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
        whole.clamp(1, LONGEST_TTL) as i32
    })
}

/// Row that is bound to `put_fields`: fields that the put does not hold are left unset, so that they stay as they are.
pub(super) struct FieldsRow<'a> {
    pub put: Put<'a>,
    pub columns: u16,
    pub timestamp: i64,
}

/// Returns the error for a field that the table has no column for.
#[derive(Debug, thiserror::Error)]
#[error(
    "a record with a field {field}, but the table has columns for {columns}: choose another table \
     (`table=NAME`) with `fields={}`", field + 1
)]
struct NoColumn {
    field: u16,
    columns: u16,
}

impl SerializeRow for FieldsRow<'_> {
    fn serialize(
        &self,
        _: &RowSerializationContext<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), SerializationError> {
        let mut set = |bytes: &[u8]| -> Result<(), CellOverflowError> {
            writer.make_cell_writer().set_value(bytes).map(drop)
        };
        set(self.put.key).map_err(SerializationError::new)?;
        let mut fields = self.put.value.fields().peekable();
        for column in 0..self.columns {
            match fields.next_if(|(field, _)| *field == column) {
                Some((_, bytes)) => {
                    writer.make_cell_writer().set_value(bytes).map_err(SerializationError::new)?;
                }
                None => drop(writer.make_cell_writer().set_unset()),
            }
        }
        if let Some((field, _)) = fields.next() {
            return Err(SerializationError::new(NoColumn { field, columns: self.columns }));
        }
        let mut set = |bytes: &[u8]| writer.make_cell_writer().set_value(bytes).map(drop);
        set(&self.timestamp.to_be_bytes()).map_err(SerializationError::new)?;
        set(&seconds(&self.put).to_be_bytes()).map_err(SerializationError::new)
    }

    fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvdyno_core::store::{FieldSpan, Value};

    use super::*;

    fn put(ttl: Option<Duration>) -> Put<'static> {
        let value = Value::new(b"", &[]);
        Put { key: b"k", value, insert: true, partial: false, record_fields: 1, ttl }
    }

    #[test]
    fn a_time_to_live_is_whole_seconds_and_never_none_by_accident() {
        assert_eq!(seconds(&put(None)), 0);
        assert_eq!(seconds(&put(Some(Duration::ZERO))), 1);
        assert_eq!(seconds(&put(Some(Duration::from_secs(10)))), 10);
        assert_eq!(seconds(&put(Some(Duration::from_millis(1001)))), 2);
        assert_eq!(seconds(&put(Some(Duration::MAX))), 630_720_000);
    }

    #[test]
    fn an_insert_has_a_mark_for_each_column() {
        assert_eq!(
            insert("t", "f0, f1", 2),
            "INSERT INTO t (key, f0, f1) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?"
        );
    }

    fn bound(fields: &[FieldSpan], bytes: &[u8], columns: u16) -> Result<Vec<u8>, String> {
        let put = Put { value: Value::new(bytes, fields), record_fields: 3, ..put(None) };
        let row = FieldsRow { put, columns, timestamp: 7 };
        let mut out = Vec::new();
        let written =
            row.serialize(&RowSerializationContext::empty(), &mut RowWriter::new(&mut out));
        written.map(|()| out).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_that_are_not_written_are_left_as_they_are() {
        let span = |index, start, end| FieldSpan { index, start, end };
        let only = [span(1, 0, 2)];
        let expected = [
            &b"\0\0\0\x01k"[..],
            b"\xff\xff\xff\xfe",
            b"\0\0\0\x02xy",
            b"\xff\xff\xff\xfe",
            b"\0\0\0\x08\0\0\0\0\0\0\0\x07",
            b"\0\0\0\x04\0\0\0\0",
        ];
        assert_eq!(bound(&only, b"xy", 3).unwrap(), expected.concat());
        let both = [span(0, 0, 1), span(3, 1, 2)];
        let refused = bound(&both, b"ab", 3).unwrap_err();
        assert!(refused.contains("`fields=4`"), "{refused}");
    }
}
