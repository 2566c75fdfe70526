//! Parquet files of flat tables, for DuckDB and pandas: the few parts of the format that such tables need. The format's
//! own library would bring some 60 more packages, for encodings and nested types that no table here has.
//! A group of rows has one page a column: levels that tell which cells are there, then their values one after the other,
//! packed by gzip. At the end stands what there is and where, in Thrift's compact protocol (`parquet.thrift` of Apache
//! Parquet has the numbers).

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use kvdyno_core::shown::plain;

use super::table::{Cell, Column, ColumnType, TableWriter};

/// Begin and end of a file.
const MAGIC: &[u8] = b"PAR1";
/// Rows of a group, as readers like them: they take groups side by side.
const ROWS_OF_GROUP: usize = 100_000;
/// Bytes of a column's page beyond which a group ends sooner.
const LARGEST_PAGE: usize = 64 << 20;

/// How a cell is coded and packed.
const PLAIN: i32 = 0;
const RUN_LENGTHS: i32 = 3;
const GZIP: i32 = 2;
/// A cell may be missing.
const OPTIONAL: i32 = 1;
/// Text is UTF-8.
const UTF8: i32 = 0;
const DATA_PAGE: i32 = 0;

/// A file that grows in memory.
pub(super) struct ParquetTable {
    columns: Vec<ColumnChunk>,
    file: Vec<u8>,
    groups: Vec<Thrift>,
    rows: usize,
    rows_in_all: usize,
}

/// The cells of a column in a group.
struct ColumnChunk {
    name: &'static str,
    of: ColumnType,
    present: Vec<bool>,
    /// Those that are there; of truths a byte each.
    values: Vec<u8>,
}

impl ParquetTable {
    pub fn new(columns: &[Column]) -> ParquetTable {
        let chunk = |&(name, of): &Column| ColumnChunk {
            name,
            of,
            present: Vec::new(),
            values: Vec::new(),
        };
        ParquetTable {
            columns: columns.iter().map(chunk).collect(),
            file: MAGIC.to_vec(),
            groups: Vec::new(),
            rows: 0,
            rows_in_all: 0,
        }
    }

    pub fn end(mut self) -> Vec<u8> {
        self.end_group();
        let root = Thrift::Struct(vec![
            (4, Thrift::text("table")),
            (5, Thrift::I32(self.columns.len() as i32)),
        ]);
        let schema = std::iter::once(root).chain(self.columns.iter().map(ColumnChunk::schema));
        let footer = Thrift::Struct(vec![
            (1, Thrift::I32(1)),
            (2, Thrift::List(schema.collect())),
            (3, Thrift::I64(self.rows_in_all as i64)),
            (4, Thrift::List(self.groups)),
            (6, Thrift::text(concat!("kvdyno version ", env!("CARGO_PKG_VERSION")))),
        ]);
        let begin = self.file.len();
        footer.write(&mut self.file);
        let length = (self.file.len() - begin) as u32;
        self.file.extend(length.to_le_bytes());
        self.file.extend(MAGIC);
        self.file
    }

    fn end_group(&mut self) {
        if self.rows == 0 {
            return;
        }
        let begin = self.file.len();
        let (mut chunks, mut unpacked) = (Vec::new(), 0);
        for column in &mut self.columns {
            let at = self.file.len();
            let size = column.write_page(&mut self.file);
            chunks.push(column.described(at, self.file.len() - at, size, self.rows));
            unpacked += size;
        }
        self.groups.push(Thrift::Struct(vec![
            (1, Thrift::List(chunks)),
            (2, Thrift::I64(unpacked as i64)),
            (3, Thrift::I64(self.rows as i64)),
            (5, Thrift::I64(begin as i64)),
            (6, Thrift::I64((self.file.len() - begin) as i64)),
        ]));
        self.rows_in_all += self.rows;
        self.rows = 0;
    }
}

impl TableWriter for ParquetTable {
    fn row(&mut self, cells: &[Cell<'_>]) {
        let mut largest = 0;
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.add(cell);
            largest = largest.max(column.values.len());
        }
        self.rows += 1;
        if self.rows == ROWS_OF_GROUP || largest > LARGEST_PAGE {
            self.end_group();
        }
    }
}

impl ColumnChunk {
    fn add(&mut self, cell: &Cell<'_>) {
        let values = &mut self.values;
        let is_there = match (cell, self.of) {
            (Cell::Text(Some(text)), ColumnType::Text) => {
                let text = plain(text);
                values.extend((text.len() as u32).to_le_bytes());
                values.extend(text.as_bytes());
                true
            }
            (Cell::Count(Some(count)), ColumnType::Count) => {
                values.extend(i64::try_from(*count).unwrap_or(i64::MAX).to_le_bytes());
                true
            }
            (Cell::Real(Some(real)), ColumnType::Real) => {
                values.extend(real.to_le_bytes());
                true
            }
            (Cell::Truth(truth), ColumnType::Truth) => {
                values.push(u8::from(*truth));
                true
            }
            (Cell::Text(None), ColumnType::Text)
            | (Cell::Count(None), ColumnType::Count)
            | (Cell::Real(None), ColumnType::Real) => false,
            (cell, of) => unreachable!("{cell:?} in the column {} of {of:?}", self.name),
        };
        self.present.push(is_there);
    }

    /// Number of the type of its values.
    fn physical(&self) -> i32 {
        match self.of {
            ColumnType::Truth => 0,
            ColumnType::Count => 2,
            ColumnType::Real => 5,
            ColumnType::Text => 6,
        }
    }

    fn schema(&self) -> Thrift {
        let mut element = vec![
            (1, Thrift::I32(self.physical())),
            (3, Thrift::I32(OPTIONAL)),
            (4, Thrift::text(self.name)),
        ];
        if self.of == ColumnType::Text {
            element.push((6, Thrift::I32(UTF8)));
        }
        Thrift::Struct(element)
    }

    /// Writes its page and forgets its cells; how many bytes that is before it is packed.
    fn write_page(&mut self, to: &mut Vec<u8>) -> usize {
        let mut page = levels(&self.present);
        match self.of {
            ColumnType::Truth => {
                page.extend(self.values.chunks(8).map(|bits| {
                    bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << at)
                }))
            }
            _ => page.append(&mut self.values),
        }
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&page).expect("memory takes it");
        let packed = packer.finish().expect("memory takes it");
        let head = Thrift::Struct(vec![
            (1, Thrift::I32(DATA_PAGE)),
            (2, Thrift::I32(page.len() as i32)),
            (3, Thrift::I32(packed.len() as i32)),
            (
                5,
                Thrift::Struct(vec![
                    (1, Thrift::I32(self.present.len() as i32)),
                    (2, Thrift::I32(PLAIN)),
                    (3, Thrift::I32(RUN_LENGTHS)),
                    (4, Thrift::I32(RUN_LENGTHS)),
                ]),
            ),
        ]);
        let begin = to.len();
        head.write(to);
        let head_length = to.len() - begin;
        to.extend(packed);
        self.present.clear();
        self.values.clear();
        head_length + page.len()
    }

    /// What the end of the file tells of a page that begins at `at`.
    fn described(&self, at: usize, packed: usize, unpacked: usize, rows: usize) -> Thrift {
        let encodings = [PLAIN, RUN_LENGTHS].map(Thrift::I32);
        let about = Thrift::Struct(vec![
            (1, Thrift::I32(self.physical())),
            (2, Thrift::List(encodings.into())),
            (3, Thrift::List(vec![Thrift::text(self.name)])),
            (4, Thrift::I32(GZIP)),
            (5, Thrift::I64(rows as i64)),
            (6, Thrift::I64(unpacked as i64)),
            (7, Thrift::I64(packed as i64)),
            (9, Thrift::I64(at as i64)),
        ]);
        Thrift::Struct(vec![(2, Thrift::I64(at as i64)), (3, about)])
    }
}

/// Which cells are there, as runs of one bit, behind their length.
fn levels(present: &[bool]) -> Vec<u8> {
    let mut runs = Vec::new();
    for run in present.chunk_by(|one, next| one == next) {
        variable(run.len() as u64 * 2, &mut runs);
        runs.push(u8::from(run[0]));
    }
    let mut bytes = (runs.len() as u32).to_le_bytes().to_vec();
    bytes.append(&mut runs);
    bytes
}

/// A number in as few bytes as it needs, seven bits each, the lowest first.
fn variable(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// A value in Thrift's compact protocol. Fields of a struct go up by at most 15, and lists are of one type.
enum Thrift {
    I32(i32),
    I64(i64),
    Text(String),
    List(Vec<Thrift>),
    Struct(Vec<(u8, Thrift)>),
}

impl Thrift {
    fn text(text: &str) -> Thrift {
        Thrift::Text(text.to_owned())
    }

    /// Number of its type.
    fn kind(&self) -> u8 {
        match self {
            Thrift::I32(_) => 5,
            Thrift::I64(_) => 6,
            Thrift::Text(_) => 8,
            Thrift::List(_) => 9,
            Thrift::Struct(_) => 12,
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        // Signs go into the lowest bit.
        let signed =
            |number: i64, to: &mut Vec<u8>| variable(((number << 1) ^ (number >> 63)) as u64, to);
        match self {
            Thrift::I32(number) => signed(i64::from(*number), to),
            Thrift::I64(number) => signed(*number, to),
            Thrift::Text(text) => {
                variable(text.len() as u64, to);
                to.extend(text.as_bytes());
            }
            Thrift::List(parts) => {
                let kind = parts.first().map_or(12, Thrift::kind);
                match parts.len() {
                    few @ 0..15 => to.push((few as u8) << 4 | kind),
                    many => {
                        to.push(0xf0 | kind);
                        variable(many as u64, to);
                    }
                }
                parts.iter().for_each(|part| part.write(to));
            }
            Thrift::Struct(fields) => {
                let mut last = 0;
                for (number, value) in fields {
                    to.push((number - last) << 4 | value.kind());
                    value.write(to);
                    last = *number;
                }
                to.push(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_levels_are_coded_as_the_format_says() {
        let mut bytes = Vec::new();
        Thrift::Struct(vec![(1, Thrift::I32(-1)), (3, Thrift::List(vec![Thrift::I64(150)]))])
            .write(&mut bytes);
        assert_eq!(bytes, [0x15, 0x01, 0x29, 0x16, 0xac, 0x02, 0x00]);
        assert_eq!(levels(&[true, true, true, false]), [4, 0, 0, 0, 6, 1, 2, 0]);
    }

    #[test]
    fn many_rows_are_several_groups() {
        let mut table = ParquetTable::new(&[("number", ColumnType::Count)]);
        let rows = 2 * ROWS_OF_GROUP + 1;
        (0..rows as u64).for_each(|number| table.row(&[Cell::Count(Some(number))]));
        assert_eq!(table.groups.len(), 2);
        let file = table.end();
        assert!(file.starts_with(MAGIC) && file.ends_with(MAGIC));
    }
}
