//! The operations of one client: which statement each sends and what its answer means.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kvdyno_core::store::{Answer, Client, ErrorClass, Put, Reading, RequestError, Rows};
use scylla::deserialize::row::ColumnIterator;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchStatement, BatchType};
use scylla::statement::prepared::PreparedStatement;

use super::clock::CLOCK;
use super::errors::{self, Effect};
use super::link::Link;
use super::statements::{FieldsRow, seconds};

/// One request slot. The clients of a worker thread share its session.
pub struct CassandraClient {
    link: Arc<Link>,
    /// Last batch that was sent, without its values: the next one is most likely as long.
    batch: Option<(Shape, Batch)>,
}

/// Columns that hold a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `value`.
    Value,
    /// `f0`, `f1`, …
    Fields,
}

/// Result of a read.
enum Found {
    Record,
    Nothing,
    /// A row is there, but none of the columns that were asked for.
    OtherShape,
}

impl CassandraClient {
    pub(super) fn new(link: Arc<Link>) -> Self {
        CassandraClient { link, batch: None }
    }

    fn shape(&self) -> Shape {
        match self.link.shared.fields.load(Ordering::Acquire) {
            true => Shape::Fields,
            false => Shape::Value,
        }
    }

    /// Keeps the shape that records have. All clients read it with each operation: it is written only if that changes it.
    fn learn(&self, shape: Shape) {
        if self.shape() != shape {
            self.link.shared.fields.store(shape == Shape::Fields, Ordering::Release);
        }
    }

    async fn read(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Answer<QueryRowsResult> {
        let answer = self.link.session.execute_unpaged(statement, values).await;
        let answer = answer.map_err(|error| errors::request_error(&error, Effect::Read))?;
        answer.into_rows_result().map_err(|error| unexpected(&error))
    }

    async fn get_as(&self, shape: Shape, key: &[u8], into: &mut Reading) -> Answer<Found> {
        let statements = &self.link.statements;
        let statement = match (shape, &statements.get_fields) {
            (Shape::Value, _) => &statements.get_value,
            (Shape::Fields, Some(statement)) => statement,
            (Shape::Fields, None) => return Ok(Found::OtherShape),
        };
        let result = self.read(statement, (key,)).await?;
        let row = result.maybe_first_row::<ColumnIterator<'_, '_>>();
        let Some(row) = row.map_err(|error| unexpected(&error))? else {
            return Ok(Found::Nothing);
        };
        let mut found = Found::OtherShape;
        for (index, column) in row.enumerate() {
            let column = column.map_err(|error| unexpected(&error))?;
            let Some(bytes) = column.slice else { continue };
            match shape {
                Shape::Value => into.set_whole(bytes.as_slice()),
                Shape::Fields => into.push_field(index as u16, bytes.as_slice()),
            }
            found = Found::Record;
        }
        Ok(found)
    }

    /// Reads rows of several keys: whole values, fields end to end. Returns `false` if a row holds none of the
    /// columns that were asked for.
    async fn get_all_as(&self, shape: Shape, keys: &[&[u8]], into: &mut Rows) -> Answer<bool> {
        let statements = &self.link.statements;
        let statement = match (shape, &statements.get_all_fields) {
            (Shape::Value, _) => &statements.get_values,
            (Shape::Fields, Some(statement)) => statement,
            (Shape::Fields, None) => return Ok(false),
        };
        let result = self.read(statement, (keys,)).await?;
        let rows = result.rows::<ColumnIterator<'_, '_>>().map_err(|error| unexpected(&error))?;
        let mut found: HashMap<&[u8], Vec<u8>> = HashMap::with_capacity(keys.len());
        for row in rows {
            let mut columns = row.map_err(|error| unexpected(&error))?;
            let key = columns.next().transpose().map_err(|error| unexpected(&error))?;
            let Some(key) = key.and_then(|column| column.slice) else { continue };
            let mut value = None;
            for column in columns {
                let column = column.map_err(|error| unexpected(&error))?;
                if let Some(bytes) = column.slice {
                    value.get_or_insert_with(Vec::new).extend_from_slice(bytes.as_slice());
                }
            }
            match value {
                Some(value) => drop(found.insert(key.as_slice(), value)),
                None => return Ok(false),
            }
        }
        keys.iter().for_each(|key| into.push(key, found.get(key).map(Vec::as_slice)));
        Ok(true)
    }

    async fn write(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Answer<()> {
        let answer = self.link.session.execute_unpaged(statement, values).await;
        answer.map(drop).map_err(|error| errors::request_error(&error, Effect::Write))
    }

    /// Returns the statement for records of several fields, and how many the table has columns for.
    fn put_fields(&self) -> Answer<(&PreparedStatement, u16)> {
        let statement = self.link.statements.put_fields.as_ref();
        statement.map(|statement| (statement, self.link.schema.fields)).ok_or_else(|| {
            let message = "the table has no columns for fields: choose another (`table=NAME`)";
            RequestError::failed(ErrorClass::Rejected, message)
        })
    }

    /// Returns a batch of `count` statements without their values.
    fn batch(&mut self, shape: Shape, count: usize) -> Answer<&Batch> {
        let fits =
            |(known, batch): &(Shape, Batch)| *known == shape && batch.statements.len() == count;
        if !self.batch.as_ref().is_some_and(fits) {
            let statement = match shape {
                Shape::Value => &self.link.statements.put_value,
                Shape::Fields => self.put_fields()?.0,
            };
            let level = statement.get_consistency();
            let all = vec![BatchStatement::PreparedStatement(statement.clone()); count];
            let mut batch = Batch::new_with_statements(BatchType::Unlogged, all);
            if let Some(level) = level {
                batch.set_consistency(level);
            }
            self.batch = Some((shape, batch));
        }
        self.batch.as_ref().map(|(_, batch)| batch).ok_or_else(|| unexpected(&"no batch"))
    }
}

impl Client for CassandraClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let mut shape = self.shape();
        // The first read of a run that has written nothing does not know how records are kept.
        for _ in 0..2 {
            match self.get_as(shape, key, into).await? {
                Found::Record => return Ok(true),
                Found::Nothing => return Ok(false),
                Found::OtherShape => shape = other(shape),
            }
            self.learn(shape);
        }
        Err(empty_row())
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        if put.record_fields > 1 {
            self.learn(Shape::Fields);
            let (statement, columns) = self.put_fields()?;
            return self.write(statement, fields_row(&put, columns)).await;
        }
        self.learn(Shape::Value);
        self.write(&self.link.statements.put_value, value_row(&put)).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        self.write(&self.link.statements.delete, (CLOCK.next(), key)).await?;
        // Cassandra does not tell whether there was a row, and its users do not look first.
        Ok(true)
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut shape = self.shape();
        for _ in 0..2 {
            if self.get_all_as(shape, keys, into).await? {
                return Ok(());
            }
            shape = other(shape);
            self.learn(shape);
        }
        Err(empty_row())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let Some(first) = puts.first() else { return Ok(()) };
        let shape = if first.record_fields > 1 { Shape::Fields } else { Shape::Value };
        self.learn(shape);
        let columns = self.link.schema.fields;
        let link = Arc::clone(&self.link);
        let batch = self.batch(shape, puts.len())?;
        // A timestamp for each row: of two versions of a record in one batch the later must win.
        let answer = match shape {
            Shape::Value => {
                let rows: Vec<_> = puts.iter().map(value_row).collect();
                link.session.batch(batch, rows).await
            }
            Shape::Fields => {
                let rows: Vec<_> = puts.iter().map(|put| fields_row(put, columns)).collect();
                link.session.batch(batch, rows).await
            }
        };
        answer.map(drop).map_err(|error| errors::request_error(&error, Effect::Batch))
    }
}

/// Returns the row that is bound to `put_value`: the timestamp is drawn here, before the request is sent.
fn value_row<'a>(put: &Put<'a>) -> (&'a [u8], &'a [u8], i64, i32) {
    (put.key, put.value.whole(), CLOCK.next(), seconds(put))
}

fn fields_row<'a>(put: &Put<'a>, columns: u16) -> FieldsRow<'a> {
    FieldsRow { put: *put, columns, timestamp: CLOCK.next() }
}

fn other(shape: Shape) -> Shape {
    match shape {
        Shape::Value => Shape::Fields,
        Shape::Fields => Shape::Value,
    }
}

fn unexpected(error: &dyn std::fmt::Display) -> RequestError {
    RequestError::failed(
        ErrorClass::Protocol,
        format!("the answer does not match the request: {error}"),
    )
}

fn empty_row() -> RequestError {
    let message = "a row without a value, which kvdyno did not write: wipe it or choose another \
                   table (`table=NAME`)";
    RequestError::failed(ErrorClass::Rejected, message)
}
