// Package inventory reads the files of inventories whose format is not supported by the standard
// library.
package inventory

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/messagehub/messagehub/domain"
)

// maxFile is the limit for a Parquet file, in bytes. The file is copied to the folder for temporary
// files before it is read, because its index is at its end.
const maxFile = 4 << 30

// readAtOnce is the number of rows that are in memory at a time.
const readAtOnce = 128

// Parquet returns the rows of a Parquet file of size bytes. A row has texts by the names of their
// columns; times are in the format of RFC 3339. Columns in groups are omitted. A malformed file is
// Invalid.
func Parquet(r io.Reader, size int64) iter.Seq2[map[string]string, error] {
	return func(yield func(map[string]string, error) bool) {
		if size > maxFile {
			yield(nil, domain.Errorf(domain.Invalid, "want a Parquet file of at most %d bytes, got %d", maxFile, size))
			return
		}
		file, err := copyToTemporary(r)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}()
		if err := readRows(file, size, yield); err != nil {
			yield(nil, err)
		}
	}
}

// copyToTemporary copies a file to the folder for temporary files.
func copyToTemporary(r io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "messagehub-inventory-")
	if err != nil {
		return nil, domain.Errorf(domain.Unavailable, "keep a Parquet file: %w", err)
	}
	if _, err = io.Copy(file, r); err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return nil, domain.Errorf(domain.Unavailable, "keep a Parquet file: %w", err)
	}
	return file, nil
}

// readRows yields all rows, and returns an error if the file is damaged. The library may panic on a
// damaged file.
func readRows(file io.ReaderAt, size int64, yield func(map[string]string, error) bool) (err error) {
	isYielding := false
	defer func() {
		if isYielding {
			return // the panic came from yield, a function of the caller
		}
		if p := recover(); p != nil {
			err = domain.Errorf(domain.Invalid, "the Parquet file is damaged: %v", p)
		}
	}()
	f, err := parquet.OpenFile(file, size)
	if err != nil {
		return domain.Errorf(domain.Invalid, "open the Parquet file: %w", err)
	}
	columns := leafColumns(f)
	rows := make([]parquet.Row, readAtOnce)
	for _, group := range f.RowGroups() {
		reader := group.Rows()
		for {
			n, err := reader.ReadRows(rows)
			for _, row := range rows[:n] {
				named := nameValues(row, columns)
				isYielding = true
				if !yield(named, nil) {
					return reader.Close()
				}
				isYielding = false
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				_ = reader.Close()
				return domain.Errorf(domain.Invalid, "read the Parquet file: %w", err)
			}
		}
		if err := reader.Close(); err != nil {
			return fmt.Errorf("read the Parquet file: %w", err)
		}
	}
	return nil
}

// A leaf describes a column of a Parquet file.
type leaf struct {
	name   string                // empty for a column in a group
	timeOf func(int64) time.Time // nil unless the values of the column are times
}

// leafColumns returns the columns of a file by index.
func leafColumns(f *parquet.File) []leaf {
	var all []leaf
	for _, path := range f.Schema().Columns() {
		l := leaf{}
		if column, ok := f.Schema().Lookup(path...); ok && len(path) == 1 {
			l.name = path[0]
			if logical := column.Node.Type().LogicalType(); logical != nil {
				if t, ok := logical.Value.(*format.TimestampType); ok {
					l.timeOf = unitOf(t.Unit.Value)
				}
			}
		}
		all = append(all, l)
	}
	return all
}

func unitOf(unit format.TimeUnitValue) func(int64) time.Time {
	switch unit.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli
	case *format.MicroSeconds:
		return time.UnixMicro
	default:
		return func(ns int64) time.Time { return time.Unix(0, ns) }
	}
}

// nameValues returns the texts of a row by column name.
func nameValues(row parquet.Row, columns []leaf) map[string]string {
	named := make(map[string]string, len(columns))
	for _, v := range row {
		l := columns[v.Column()]
		if l.name != "" && !v.IsNull() {
			named[l.name] = l.textOf(v)
		}
	}
	return named
}

func (l *leaf) textOf(v parquet.Value) string {
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean())
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10)
	case parquet.Int64:
		if l.timeOf != nil {
			return l.timeOf(v.Int64()).UTC().Format(time.RFC3339Nano)
		}
		return strconv.FormatInt(v.Int64(), 10)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return string(v.ByteArray())
	default:
		return v.String()
	}
}
