package ledger

import (
	"crypto/md5" //nolint:gosec // the sums of inventories are MD5
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ErrUnsupportedFormat reports that the hub does not support the file format of an inventory.
var ErrUnsupportedFormat = errors.New("the format of the files is not supported")

// The limits for manifests.
const (
	maxManifest      = 512 << 10 // maximum length of a manifest, in bytes
	maxManifestFiles = 2000
)

// The supported file formats of an inventory.
const (
	formatCSV     = "CSV"
	formatParquet = "Parquet"
)

// A manifest lists the files of an inventory, in the format of S3.
type manifest struct {
	SourceBucket      string         `json:"sourceBucket"`
	DestinationBucket string         `json:"destinationBucket"` // name or ARN of the bucket that contains the files
	CreationTimestamp string         `json:"creationTimestamp"` // milliseconds
	FileFormat        string         `json:"fileFormat"`
	FileSchema        string         `json:"fileSchema"`
	Files             []manifestFile `json:"files"`
}

// A manifestFile identifies one file of an inventory.
type manifestFile struct {
	Key string `json:"key"`
	MD5 string `json:"MD5checksum"` // hexadecimal MD5 sum; "": the sum is not verified
}

// parseManifest parses a manifest. It fails with Invalid if the manifest is not valid, and with
// ErrUnsupportedFormat if the hub does not support the file format.
func parseManifest(text []byte) (*manifest, error) {
	if len(text) > maxManifest {
		return nil, domain.Errorf(domain.Invalid, "manifest: want at most %d bytes", maxManifest)
	}
	m := &manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, domain.Errorf(domain.Invalid, "manifest: %w", err)
	}
	if _, err := domain.ParseObjectName(m.SourceBucket, "key"); err != nil {
		return nil, domain.Errorf(domain.Invalid, "manifest: sourceBucket: %w", err)
	}
	m.DestinationBucket = m.DestinationBucket[strings.LastIndexByte(m.DestinationBucket, ':')+1:]
	if _, err := domain.ParseObjectName(m.DestinationBucket, "key"); err != nil {
		return nil, domain.Errorf(domain.Invalid, "manifest: destinationBucket: %w", err)
	}
	if _, err := m.createdAt(); err != nil {
		return nil, err
	}
	if n := len(m.Files); n < 1 || n > maxManifestFiles {
		return nil, domain.Errorf(domain.Invalid, "manifest: files: want 1 to %d, got %d", maxManifestFiles, n)
	}
	for i := range m.Files {
		if err := m.Files[i].checkFields(m.DestinationBucket); err != nil {
			return nil, domain.Errorf(domain.Invalid, "manifest: files/%d: %w", i, err)
		}
	}
	return m, m.checkFormat()
}

func (m *manifest) checkFormat() error {
	switch {
	case strings.EqualFold(m.FileFormat, formatParquet):
		m.FileFormat = formatParquet // a Parquet file contains its schema
		return nil
	case !strings.EqualFold(m.FileFormat, formatCSV):
		return domain.Errorf(domain.Invalid, "manifest: fileFormat %q: %w", domain.Shorten(m.FileFormat), ErrUnsupportedFormat)
	}
	m.FileFormat = formatCSV
	if m.FileSchema == "" {
		return nil
	}
	_, err := parseColumns(strings.Split(m.FileSchema, ","))
	return err
}

// createdAt returns the time at which the inventory was created.
func (m *manifest) createdAt() (time.Time, error) {
	ms, err := strconv.ParseInt(m.CreationTimestamp, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, domain.Errorf(domain.Invalid, "manifest: creationTimestamp: want milliseconds in a string, got %q", domain.Shorten(m.CreationTimestamp))
	}
	return time.UnixMilli(ms).UTC(), nil
}

func (f *manifestFile) checkFields(bucket string) error {
	if _, err := domain.ParseObjectName(bucket, f.Key); err != nil {
		return err
	}
	if sum, err := hex.DecodeString(f.MD5); err != nil || len(sum) != md5.Size && len(sum) != 0 {
		return domain.Errorf(domain.Invalid, "MD5checksum: want %d hexadecimal digits, got %q", 2*md5.Size, domain.Shorten(f.MD5))
	}
	return nil
}

// A columns value contains the index of each column in a row, by the column's name as columnName
// returns it.
type columns map[string]int

const keyColumn = "key"

// defaultColumns is used for a file without a header if the manifest contains no schema.
var defaultColumns = columns{
	"bucket": 0, keyColumn: 1, "versionid": 2, "islatest": 3, "isdeletemarker": 4, "size": 5, "lastmodifieddate": 6, "etag": 7, "storageclass": 8,
}

// columnName returns a column's name in normalized form: versionid for VersionId and version_id.
func columnName(text string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "_", "")
}

// parseColumns parses a schema or a header. It fails with Invalid if there is no column for keys,
// or if a name occurs twice.
func parseColumns(names []string) (columns, error) {
	c := make(columns, len(names))
	for i, name := range names {
		name = columnName(name)
		if _, twice := c[name]; twice {
			return nil, domain.Errorf(domain.Invalid, "column %q occurs twice", domain.Shorten(name))
		}
		c[name] = i
	}
	if _, has := c[keyColumn]; !has {
		return nil, domain.Errorf(domain.Invalid, "there is no column Key")
	}
	return c, nil
}

// isHeader reports whether a row is a header. A row with data cannot be mistaken for a header,
// because no bucket has the name of a column.
func isHeader(row []string) bool {
	hasBucket, hasKey := false, false
	for _, cell := range row {
		hasBucket = hasBucket || cell == "Bucket"
		hasKey = hasKey || cell == "Key"
	}
	return hasBucket && hasKey
}
