package ledger

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5" //nolint:gosec // the sums of inventories are MD5
	"encoding/csv"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The limits for files of an inventory.
const (
	maxInflation = 200      // maximum ratio of a file's uncompressed size to its compressed size
	minInflated  = 64 << 20 // up to this uncompressed size, any ratio is permitted
	maxRecord    = 1 << 20  // maximum length of a row, in bytes
)

// A fileRecord is a row of a file. It maps the name of each column, as columnName returns it, to the
// text in the column.
type fileRecord map[string]string

// openFile opens an object in a store for reading.
func (s *Service) openFile(ctx context.Context, bucket, key string) (io.ReadCloser, error) {
	if s.Source == nil {
		return nil, repository.ErrNoStore
	}
	name, err := domain.ParseObjectName(bucket, key)
	if err != nil {
		return nil, err
	}
	return s.Source.Open(ctx, name)
}

// readFile returns the content of an object that has at most limit bytes.
func (s *Service) readFile(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	r, err := s.openFile(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, domain.Errorf(domain.Unavailable, "read %q: %w", domain.Shorten(key), err)
	}
	if int64(len(text)) > limit {
		return nil, domain.Errorf(domain.Invalid, "%q has more than %d bytes", domain.Shorten(key), limit)
	}
	return text, nil
}

// openLeased opens an object in a store. Each read also renews the job's lease, so that reading may
// take longer than the lease.
func (t *task) openLeased(ctx context.Context, bucket, key string) (io.ReadCloser, error) {
	r, err := t.openFile(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	return &leasedFile{r, func() error { return t.renewOldLease(ctx) }}, nil
}

// A leasedFile is a file whose reads first renew the lease of a job.
type leasedFile struct {
	io.ReadCloser
	renew func() error
}

// Read implements [io.Reader].
func (f *leasedFile) Read(p []byte) (int, error) {
	if err := f.renew(); err != nil {
		return 0, err
	}
	return f.ReadCloser.Read(p)
}

// checkSum verifies a file's MD5 sum, and returns the file's length in bytes.
func (t *task) checkSum(ctx context.Context, bucket string, f *manifestFile) (int64, error) {
	r, err := t.openLeased(ctx, bucket, f.Key)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	sum := md5.New() //nolint:gosec // the sums of inventories are MD5
	n, err := io.Copy(sum, r)
	if err != nil {
		return 0, asFileError(f, err)
	}
	return n, compareSum(f, sum)
}

func compareSum(f *manifestFile, sum hash.Hash) error {
	got := hex.EncodeToString(sum.Sum(nil))
	if f.MD5 != "" && !strings.EqualFold(got, f.MD5) {
		return domain.Errorf(domain.Invalid, "file %q has the MD5 %s, and the manifest says %s", domain.Shorten(f.Key), got, f.MD5)
	}
	return nil
}

// readRecords returns the rows of a file. It verifies the MD5 sum before the first row and again
// after the last row. It reads the file twice, so that the file need not fit in memory.
func (t *task) readRecords(ctx context.Context, m *manifest, f *manifestFile) iter.Seq2[fileRecord, error] {
	return func(yield func(fileRecord, error) bool) {
		size, err := t.checkSum(ctx, m.DestinationBucket, f)
		if err != nil {
			yield(nil, err)
			return
		}
		r, err := t.openLeased(ctx, m.DestinationBucket, f.Key)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Close()
		sum := md5.New() //nolint:gosec // the sums of inventories are MD5
		content := io.TeeReader(r, sum)
		rows := t.readParquet(content, size)
		if m.FileFormat == formatCSV {
			rows = readCSV(content, size, m.FileSchema)
		}
		for row, err := range rows {
			if err != nil {
				err = asFileError(f, err)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			yield(nil, asFileError(f, err))
			return
		}
		if err := compareSum(f, sum); err != nil {
			yield(nil, err)
		}
	}
}

// asFileError adds the file's name to an error. Unless the file's content certainly caused the
// error, the result is a temporary error.
func asFileError(f *manifestFile, err error) error {
	kind := domain.KindOf(err)
	_, isSyntax := errors.AsType[*csv.ParseError](err)
	switch {
	case isSyntax, errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF):
		kind = domain.Invalid
	case kind == domain.Unknown:
		kind = domain.Unavailable
	}
	return domain.Errorf(kind, "file %q: %w", domain.Shorten(f.Key), err)
}

// readParquet returns the rows of a Parquet file.
func (s *Service) readParquet(r io.Reader, size int64) iter.Seq2[fileRecord, error] {
	return func(yield func(fileRecord, error) bool) {
		if s.opts.ReadParquet == nil {
			yield(nil, ErrUnsupportedFormat)
			return
		}
		for row, err := range s.opts.ReadParquet(r, size) {
			named := make(fileRecord, len(row))
			for name, text := range row {
				named[columnName(name)] = text
			}
			if _, has := named[keyColumn]; err == nil && !has {
				err = domain.Errorf(domain.Invalid, "there is no column Key")
			}
			if !yield(named, err) || err != nil {
				return
			}
		}
	}
}

// readCSV returns the rows of a CSV file, which may be compressed with gzip. The schema defines the
// columns. If the schema is empty, the first row does, provided that it is a header. Otherwise the
// columns are defaultColumns.
func readCSV(r io.Reader, size int64, schema string) iter.Seq2[fileRecord, error] {
	return func(yield func(fileRecord, error) bool) {
		plain, err := inflateFile(r, size)
		if err != nil {
			yield(nil, err)
			return
		}
		bounded := &recordBound{r: plain}
		rows := csv.NewReader(bounded)
		rows.FieldsPerRecord, rows.ReuseRecord, rows.LazyQuotes = -1, true, true
		var at columns
		if schema != "" {
			if at, err = parseColumns(strings.Split(schema, ",")); err != nil {
				yield(nil, err)
				return
			}
		}
		for first := true; ; first = false {
			bounded.left = maxRecord
			row, err := rows.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && first {
				var isNames bool
				if at, isNames, err = columnsOf(at, row); isNames && err == nil {
					continue
				}
			}
			var named fileRecord
			if err == nil {
				if named = nameCells(row, at); named == nil {
					line, _ := rows.FieldPos(0)
					err = domain.Errorf(domain.Invalid, "line %d has no cell for the key", line)
				}
			}
			if !yield(named, err) || err != nil {
				return
			}
		}
	}
}

// columnsOf returns the columns of a file, and whether the first row is a header.
func columnsOf(schema columns, first []string) (columns, bool, error) {
	switch {
	case schema != nil:
		return schema, isHeader(first), nil
	case isHeader(first):
		named, err := parseColumns(first)
		return named, true, err
	}
	return defaultColumns, false, nil
}

// nameCells returns a row as a fileRecord, or nil if the row has no cell for the key.
func nameCells(row []string, at columns) fileRecord {
	if at[keyColumn] >= len(row) {
		return nil
	}
	named := make(fileRecord, len(at))
	for name, i := range at {
		if i < len(row) {
			named[name] = strings.Clone(row[i])
		}
	}
	key, err := url.QueryUnescape(named[keyColumn]) // keys in CSV files are URL-encoded
	if err != nil {
		key = "" // parseRecord rejects an empty key
	}
	named[keyColumn] = key
	return named
}

// inflateFile returns a file's content, after decompression if the file is a gzip file. size is the
// length of the compressed file. A read fails if the content exceeds the limits minInflated and
// maxInflation.
func inflateFile(r io.Reader, size int64) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	if begin, _ := buffered.Peek(2); !bytes.Equal(begin, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	plain, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, err
	}
	return &inflationBound{r: plain, left: max(minInflated, maxInflation*size)}, nil
}

// An inflationBound limits the bytes that are read from a compressed file. left is the number of
// bytes that remain until it fails.
type inflationBound struct {
	r    io.Reader
	left int64
}

func (b *inflationBound) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, domain.Errorf(domain.Invalid, "it has more than %d bytes for each compressed one, which no list of objects has", maxInflation)
	}
	return n, err
}

// A recordBound limits the length of each record in a file. left is the number of bytes that remain
// until it fails.
type recordBound struct {
	r    io.Reader
	left int
}

func (b *recordBound) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, domain.Errorf(domain.Invalid, "a row has more than %d bytes", maxRecord)
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}

// An inventoryRow is the parsed form of a fileRecord.
type inventoryRow struct {
	name     domain.ObjectName
	isLatest bool
	domain.ListedObject
}

// parseRecord parses a record in a bucket's inventory. It fails with Invalid if the record is not
// valid.
func parseRecord(r fileRecord, bucket string) (row inventoryRow, err error) {
	if b := r["bucket"]; b != "" && b != bucket {
		return row, domain.Errorf(domain.Invalid, "it is of bucket %q", domain.Shorten(b))
	}
	if row.name, err = domain.ParseObjectName(bucket, r[keyColumn]); err != nil {
		return row, err
	}
	if row.Version, err = domain.ParseVersionID(r["versionid"]); err != nil {
		return row, err
	}
	if row.isLatest, err = parseFlag(r["islatest"], true); err != nil {
		return row, err
	}
	if row.Marker, err = parseFlag(r["isdeletemarker"], false); err != nil {
		return row, err
	}
	row.Reason, row.StorageClass = domain.Crawl, r["storageclass"]
	if tag := r["etag"]; tag != "" {
		row.ETag = domain.QuoteETag(tag)
	}
	if text := r["size"]; text != "" {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil || size < 0 {
			return row, domain.Errorf(domain.Invalid, "size: want a whole number, got %q", domain.Shorten(text))
		}
		row.Size = &size
	}
	row.LastModified, err = parseNaiveTime(r["lastmodifieddate"])
	return row, err
}

func parseFlag(text string, byDefault bool) (bool, error) {
	if text == "" {
		return byDefault, nil
	}
	flag, err := strconv.ParseBool(strings.ToLower(text))
	if err != nil {
		return false, domain.Errorf(domain.Invalid, "want true or false, got %q", domain.Shorten(text))
	}
	return flag, nil
}

// parseNaiveTime parses a time. If the text contains no time zone, the time is in UTC.
func parseNaiveTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, domain.Errorf(domain.Invalid, "last modified: want a time, got %q", domain.Shorten(text))
}
