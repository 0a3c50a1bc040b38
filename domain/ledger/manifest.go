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

// ErrUnsupportedFormat reports an inventory with files in a format that the hub does not read.
var ErrUnsupportedFormat = errors.New("the format of the files is not supported")

// Limits of manifests.
const (
	maxManifest      = 512 << 10 // bytes
	maxManifestFiles = 2000
)

// The formats of the files of an inventory.
const (
	formatCSV     = "CSV"
	formatParquet = "Parquet"
)

// A manifest is the list of the files of an inventory, as S3 makes it.
type manifest struct {
	SourceBucket      string         `json:"sourceBucket"`
	DestinationBucket string         `json:"destinationBucket"` // its name, or its ARN
	CreationTimestamp string         `json:"creationTimestamp"` // milliseconds
	FileFormat        string         `json:"fileFormat"`
	FileSchema        string         `json:"fileSchema"`
	Files             []manifestFile `json:"files"`
}

// A manifestFile is a file of an inventory.
type manifestFile struct {
	Key string `json:"key"`
	MD5 string `json:"MD5checksum"` // hexadecimal; empty: not given
}

// parseManifest parses a manifest. A wrong manifest is an Invalid error, and an unknown format
// is ErrUnsupportedFormat.
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
	if _, err := m.madeAt(); err != nil {
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
		m.FileFormat = formatParquet // Parquet files have their schema themselves
		return nil
	case !strings.EqualFold(m.FileFormat, formatCSV):
		return domain.Errorf(domain.Invalid, "manifest: fileFormat %q: %w", domain.Clip(m.FileFormat), ErrUnsupportedFormat)
	}
	m.FileFormat = formatCSV
	if m.FileSchema == "" {
		return nil
	}
	_, err := parseColumns(strings.Split(m.FileSchema, ","))
	return err
}

// madeAt returns the time at which the inventory was made.
func (m *manifest) madeAt() (time.Time, error) {
	ms, err := strconv.ParseInt(m.CreationTimestamp, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, domain.Errorf(domain.Invalid, "manifest: creationTimestamp: want milliseconds in a string, got %q", domain.Clip(m.CreationTimestamp))
	}
	return time.UnixMilli(ms).UTC(), nil
}

func (f *manifestFile) checkFields(bucket string) error {
	if _, err := domain.ParseObjectName(bucket, f.Key); err != nil {
		return err
	}
	if sum, err := hex.DecodeString(f.MD5); err != nil || len(sum) != md5.Size && len(sum) != 0 {
		return domain.Errorf(domain.Invalid, "MD5checksum: want %d hexadecimal digits, got %q", 2*md5.Size, domain.Clip(f.MD5))
	}
	return nil
}

// columns are the indexes of the columns of a file, by the names that columnName returns.
type columns map[string]int

const keyColumn = "key"

// defaultColumns are the columns of files that have neither a schema in the manifest nor a
// header.
var defaultColumns = columns{
	"bucket": 0, keyColumn: 1, "versionid": 2, "islatest": 3, "isdeletemarker": 4, "size": 5, "lastmodifieddate": 6, "etag": 7, "storageclass": 8,
}

// columnName returns the normalized name of a column: VersionId and version_id are the same.
func columnName(text string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "_", "")
}

// parseColumns returns the columns of a schema or a header. It fails with Invalid if there is
// no column for keys, or if a name occurs twice.
func parseColumns(names []string) (columns, error) {
	c := make(columns, len(names))
	for i, name := range names {
		name = columnName(name)
		if _, twice := c[name]; twice {
			return nil, domain.Errorf(domain.Invalid, "column %q occurs twice", domain.Clip(name))
		}
		c[name] = i
	}
	if _, has := c[keyColumn]; !has {
		return nil, domain.Errorf(domain.Invalid, "there is no column Key")
	}
	return c, nil
}

// isHeader reports whether a row is a header. No bucket has the name of a column, so a row with
// data is never taken for a header.
func isHeader(row []string) bool {
	hasBucket, hasKey := false, false
	for _, cell := range row {
		hasBucket = hasBucket || cell == "Bucket"
		hasKey = hasKey || cell == "Key"
	}
	return hasBucket && hasKey
}
