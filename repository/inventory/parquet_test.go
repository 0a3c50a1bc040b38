package inventory_test

import (
	"bytes"
	"math"
	"os"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/inventory"
)

// A row has the columns that S3 writes.
type row struct {
	Bucket         string     `parquet:"bucket"`
	Key            string     `parquet:"key"`
	VersionID      *string    `parquet:"version_id,optional"`
	IsLatest       *bool      `parquet:"is_latest,optional"`
	IsDeleteMarker *bool      `parquet:"is_delete_marker,optional"`
	Size           *int64     `parquet:"size,optional"`
	LastModified   *time.Time `parquet:"last_modified_date,optional,timestamp(millisecond)"`
	ETag           *string    `parquet:"e_tag,optional"`
}

func write(t *testing.T, rows []row) []byte {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.Compression(&parquet.Snappy))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return file.Bytes()
}

func read(t *testing.T, file []byte) (all []map[string]string, err error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	for r, err := range inventory.Parquet(bytes.NewReader(file), int64(len(file))) {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left, "the copy is removed")
	return all, nil
}

func TestParquetRowsAreTexts(t *testing.T) {
	version, isLatest, isMarker, size, modified, etag := "v1", true, false, int64(math.MaxInt64), time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), "tag"
	rows := []row{{"bucket", "a b+é", &version, &isLatest, &isMarker, &size, &modified, &etag}}
	for range 1000 {
		rows = append(rows, row{Bucket: "bucket", Key: "key"})
	}
	all, err := read(t, write(t, rows))
	require.NoError(t, err)
	require.Len(t, all, 1001)
	require.Equal(t, map[string]string{
		"bucket": "bucket", "key": "a b+é", "version_id": "v1", "is_latest": "true", "is_delete_marker": "false", "size": "9223372036854775807",
		"last_modified_date": "2026-01-02T03:04:05.678Z", "e_tag": "tag",
	}, all[0])
	require.Equal(t, map[string]string{"bucket": "bucket", "key": "key"}, all[1000])
}

func TestParquetFileThatIsDamagedIsInvalid(t *testing.T) {
	whole := write(t, []row{{Bucket: "bucket", Key: "key"}})
	for at := 0; at < len(whole); at += 3 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0xff
		if _, err := read(t, damaged); err != nil {
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
		}
		if at%7 == 0 {
			_, err := read(t, whole[:at])
			require.Error(t, err)
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
		}
	}
}

func TestParquetReaderMayStopEarly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := write(t, []row{{Key: "a"}, {Key: "b"}})
	for r, err := range inventory.Parquet(bytes.NewReader(file), int64(len(file))) {
		require.NoError(t, err)
		require.Equal(t, "a", r["key"])
		break
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}
