//! Parquet files of flat tables, for DuckDB and pandas, by the format's own library: one column of cells at a time,
//! packed by gzip.

use std::sync::Arc;

use kvdyno_core::redact::plain;
use parquet::basic::{Compression, ConvertedType, GzipLevel, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::table::{Cell, Column, ColumnType, TableWriter};

/// Rows of a group: readers process groups in parallel.
const ROWS_OF_GROUP: usize = 100_000;

/// A Parquet file that grows in memory.
pub(super) struct ParquetTable {
    writer: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Cells>,
    rows: usize,
    /// Error for which the file cannot be written, if any.
    failed: Option<ParquetError>,
}

/// Cells of a column in a group: values of those that are present, and which ones are.
struct Cells {
    values: Values,
    /// Level of each cell: 1 if it is present, else 0.
    levels: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Count(Vec<i64>),
    Real(Vec<f64>),
    Truth(Vec<bool>),
}

impl ParquetTable {
    /// Begins a file with these columns.
    ///
    /// # Errors
    /// [`ParquetError`] if the library does not take the columns.
    pub fn new(columns: &[Column]) -> Result<ParquetTable, ParquetError> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("table").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::try_new(1)?))
            .set_created_by(concat!("kvdyno version ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        Ok(ParquetTable {
            writer: SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?,
            columns: columns.iter().map(|(_, of)| Cells::new(*of)).collect(),
            rows: 0,
            failed: None,
        })
    }

    /// Ends the file and returns its bytes.
    ///
    /// # Errors
    /// [`ParquetError`] if the library could not write it.
    pub fn end(mut self) -> Result<Vec<u8>, ParquetError> {
        if self.rows > 0 {
            self.end_group()?;
        }
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.into_inner(),
        }
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        self.rows = 0;
        let mut group = self.writer.next_row_group()?;
        for cells in &mut self.columns {
            if let Some(column) = group.next_column()? {
                cells.write(column)?;
            }
        }
        group.close().map(drop)
    }
}

impl TableWriter for ParquetTable {
    fn row(&mut self, cells: &[Cell<'_>]) {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.add(cell));
        self.rows += 1;
        if self.rows == ROWS_OF_GROUP
            && let Err(error) = self.end_group()
        {
            self.failed.get_or_insert(error);
        }
    }
}

/// Returns the file's description of a column. A cell may be missing.
fn field((name, of): &Column) -> Result<TypePtr, ParquetError> {
    let (physical, converted) = match of {
        ColumnType::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        ColumnType::Count => (Physical::INT64, ConvertedType::NONE),
        ColumnType::Real => (Physical::DOUBLE, ConvertedType::NONE),
        ColumnType::Truth => (Physical::BOOLEAN, ConvertedType::NONE),
    };
    let field = Type::primitive_type_builder(name, physical).with_converted_type(converted);
    field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
}

impl Cells {
    fn new(of: ColumnType) -> Cells {
        let values = match of {
            ColumnType::Text => Values::Text(Vec::new()),
            ColumnType::Count => Values::Count(Vec::new()),
            ColumnType::Real => Values::Real(Vec::new()),
            ColumnType::Truth => Values::Truth(Vec::new()),
        };
        Cells { values, levels: Vec::new() }
    }

    fn add(&mut self, cell: &Cell<'_>) {
        let is_there = match (cell, &mut self.values) {
            (Cell::Text(text), Values::Text(all)) => {
                all.extend(text.map(|text| ByteArray::from(plain(text).as_ref())));
                text.is_some()
            }
            (Cell::Count(count), Values::Count(all)) => {
                all.extend(count.map(|count| i64::try_from(count).unwrap_or(i64::MAX)));
                count.is_some()
            }
            (Cell::Real(real), Values::Real(all)) => {
                all.extend(*real);
                real.is_some()
            }
            (Cell::Truth(truth), Values::Truth(all)) => {
                all.push(*truth);
                true
            }
            (cell, _) => unreachable!("{cell:?} in a column of another type"),
        };
        self.levels.push(i16::from(is_there));
    }

    /// Writes the cells as a column of a group, and removes them.
    fn write(&mut self, to: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = std::mem::take(&mut self.levels);
        match &mut self.values {
            Values::Text(all) => write::<ByteArrayType>(to, all, &levels),
            Values::Count(all) => write::<Int64Type>(to, all, &levels),
            Values::Real(all) => write::<DoubleType>(to, all, &levels),
            Values::Truth(all) => write::<BoolType>(to, all, &levels),
        }
    }
}

fn write<T: DataType>(
    mut to: SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    levels: &[i16],
) -> Result<(), ParquetError> {
    let values = std::mem::take(values);
    to.typed::<T>().write_batch(&values, Some(levels), None)?;
    to.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    #[test]
    fn many_rows_are_several_groups_and_come_back_with_their_gaps() {
        let columns = [("number", ColumnType::Count), ("name", ColumnType::Text)];
        let mut table = ParquetTable::new(&columns).unwrap();
        let rows = 2 * ROWS_OF_GROUP + 1;
        for number in 0..rows as u64 {
            let name = (number % 2 == 0).then_some("even");
            table.row(&[Cell::Count(Some(number)), Cell::Text(name)]);
        }
        let file = table.end().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        std::fs::write(&path, file).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.num_row_groups(), 3);
        let mut read = 0;
        for (number, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let cells: Vec<_> = row.unwrap().into_columns().into_iter().map(|(_, f)| f).collect();
            let name = if number % 2 == 0 { Field::Str("even".to_owned()) } else { Field::Null };
            assert_eq!(cells, [Field::Long(number as i64), name]);
            read += 1;
        }
        assert_eq!(read, rows);
    }
}
