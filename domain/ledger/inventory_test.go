package ledger_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// An inventory is an inventory's manifest, which tests can change.
type inventory struct {
	Source      string           `json:"sourceBucket"`
	Destination string           `json:"destinationBucket"`
	Made        string           `json:"creationTimestamp"`
	Format      string           `json:"fileFormat"`
	Schema      string           `json:"fileSchema,omitempty"`
	Files       []map[string]any `json:"files"`
}

func compress(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

// inventoryOf stores the files of an inventory in the bucket "another", and returns the manifest.
func (w *world) inventoryOf(files ...[]byte) inventory {
	w.Helper()
	m := inventory{
		Source: bucket, Destination: "arn:aws:s3:::another", Format: "CSV",
		Made: fmt.Sprint(objecttest.FirstMoment.Add(time.Minute + domain.ClockMargin).UnixMilli()),
	}
	for i, content := range files {
		key := fmt.Sprintf("data/%d.csv.gz", i)
		w.putObject(key, content)
		m.Files = append(m.Files, map[string]any{"key": key, "size": len(content), "MD5checksum": fmt.Sprintf("%x", md5.Sum(content))})
	}
	return m
}

// putObject stores an object in the bucket "another".
func (w *world) putObject(key string, content []byte) {
	w.Helper()
	name, err := domain.ParseObjectName("another", key)
	require.NoError(w, err)
	w.source.PutContent(name, content)
}

func (m inventory) text() []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return text
}

// runInventory runs an inventory job, waits for its end, and returns the job.
func (w *world) runInventory(r ledger.InventoryRequest) domain.Job {
	w.Helper()
	node := w.newNode()
	defer w.runNode(w.Context(), node)()
	job, err := node.StartInventory(w.Context(), r)
	require.NoError(w, err)
	return w.waitForEnd(node, job)
}

func (w *world) importManifest(m inventory) domain.Job {
	w.Helper()
	return w.runInventory(ledger.InventoryRequest{Manifest: m.text()})
}

const threeRows = `"bucket","a"
"bucket","b"
"bucket","c"
`

// An inventory adds a row for each object that it lists. Objects that it does not list remain
// unchanged (cases FM-70 and FM-71 of the original system).
func TestInventoryAddsARowForEachKey_AndProvesNoAbsence(t *testing.T) {
	inWorld(t, func(w *world) {
		m := w.inventoryOf(compress(`"bucket","a+b%2Fc","null","true","false","7","2026-03-01T00:00:00.000Z","tag","GLACIER"` + "\n" + threeRows))
		job := w.importManifest(m)
		require.Equal(t, domain.JobCompleted, job.State, job.Report)
		require.Equal(t, domain.JobCounts{Seen: 4, Created: 4}, job.Counts)
		require.Equal(t, "a: C@0-01+\na b/c: C@0-01+\nb: C@0-01+\nc: C@0-01+\n", w.state())
		o, err := w.objects.Object(w.Context(), w.name("a b/c"))
		require.NoError(t, err)
		size := int64(7)
		require.Equal(t, domain.ObjectFacts{
			Size: &size, ETag: `"tag"`, StorageClass: domain.ClassGlacier, LastModified: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Reason: domain.Crawl,
		}, o.Current.ObjectFacts)
		require.Equal(t, objecttest.FirstMoment.Add(time.Minute), o.Current.Time)
		require.True(t, o.Current.Sequencer.IsNull())
		before := w.state()
		m = w.inventoryOf(compress(`"bucket","a"` + "\n" + `"bucket","c"` + "\n"))
		require.Equal(t, domain.JobCounts{Seen: 2, Unchanged: 2}, w.importManifest(m).Counts)
		require.Equal(t, before, w.state())
	})
}

// Events of the store that are later than an inventory change the state after it (cases FM-72 and
// FM-73 of the original system).
func TestEventsOfTheStoreApplyAfterAnInventory(t *testing.T) {
	inWorld(t, func(w *world) {
		w.importManifest(w.inventoryOf([]byte(threeRows)))
		w.report("a", script("[D@D1+90]")...)
		w.report("a", script("[C@C1+80]")...)
		w.report("b", script("[D@D1+90]")...)
		w.report("b", script("[C@C2+95]")...)
		require.Equal(t, "a: C@0-01· C@C1· D@D1·\nb: C@0-01· D@D1· C@C2+\nc: C@0-01+\n", w.state())
	})
}

func TestOldInventory_OverridesNoLaterEvents(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("a", script("[C@C1+70, D@D1+80]")...)
		w.report("b", script("[C@C1+70]")...)
		m := w.inventoryOf([]byte(`"bucket","a",,,,5` + "\n" + `"bucket","b",,,,5` + "\n"))
		require.Equal(t, domain.JobCounts{Seen: 2, Unchanged: 2}, w.importManifest(m).Counts)
		require.Equal(t, "a: C@C1· D@D1·\nb: C@C1+\n", w.state())
	})
}

func TestInventoryHonoursVersionsAndMarkers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("deleted", script("[C@C1/1]")...)
		m := w.inventoryOf([]byte(strings.Join([]string{
			`"bucket","key","2","true","false","5"`, `"bucket","key","1","false","false","4"`,
			`"bucket","deleted","2","true","true",""`, `"bucket","deleted","1","false","false","4"`, `"bucket","gone","9","true","true",""`,
		}, "\n")))
		require.Equal(t, domain.JobCounts{Seen: 5, Created: 1, Deleted: 1, Unchanged: 3}, w.importManifest(m).Counts)
		require.Equal(t, "deleted: C@C1/1· M@C1-01/2·\nkey: C@0-01/2+\n", w.state())
	})
}

// An inventory may lack versions that were stored shortly before it was created, so it must not
// hide known versions. If it lists an unknown version, this version becomes the latest.
func TestInventoryHidesNoKnownVersion(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("known", script("[C@C1/1+1, C@C2/2+2]")...)
		w.report("not known", script("[C@C1/1+1, C@C2/2+2]")...)
		m := w.inventoryOf([]byte(strings.Join([]string{`"bucket","known","1","true","false","5"`, `"bucket","not known","3","true","false","5"`}, "\n")))
		require.Equal(t, domain.JobCounts{Seen: 2, Created: 1, Unchanged: 1}, w.importManifest(m).Counts)
		require.Equal(t, "known: C@C1/1· C@C2/2+\nnot known: C@C1/1· C@C2/2· C@C2-01/3+\n", w.state())
	})
}

// Inventories are read in each supported format (case FM-74 of the original system).
func TestInventoryIsReadInEachFormat(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		change  func(m *inventory)
	}{
		"the default columns":          {`"bucket","key","","true","false","5"`, nil},
		"a header row":                 {"Key,Size,Bucket\nkey,5,bucket", nil},
		"a schema":                     {`5,"key",x,"bucket"`, func(m *inventory) { m.Schema = "Size, Key, Other, Bucket" }},
		"a schema and a header row":    {"Size,Key,Bucket\n5,key,bucket", func(m *inventory) { m.Schema = "Size, Key, Bucket" }},
		"the schema precedes":          {"Bucket,Size,Key\n5,key,bucket", func(m *inventory) { m.Schema = "Size, Key, Bucket" }},
		"missing cells":                {"key,5", func(m *inventory) { m.Schema = "Key, Size, VersionId, ETag" }},
		"empty cells":                  {"key,5,,,,", func(m *inventory) { m.Schema = "Key, Size, VersionId, ETag, IsLatest, LastModifiedDate" }},
		"no MD5 of a file":             {`"bucket","key",,,,5`, func(m *inventory) { delete(m.Files[0], "MD5checksum") }},
		"the name of the destination":  {`"bucket","key",,,,5`, func(m *inventory) { m.Destination = "another" }},
		"a time without zone":          {`"bucket","key",,,,5,2026-01-01T00:00:00`, nil},
		"names of columns of any case": {"key_name,KEY,size\nx,key,5", func(m *inventory) { m.Schema = "other,k_e_y,SIZE" }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				m := w.inventoryOf([]byte(tc.content + "\n"))
				if tc.change != nil {
					tc.change(&m)
				}
				job := w.importManifest(m)
				require.Equal(t, domain.JobCompleted, job.State, job.Report)
				o, err := w.objects.Object(w.Context(), w.name("key"))
				require.NoError(t, err)
				require.EqualValues(t, 5, *o.Current.Size)
			})
		})
	}
}

func TestInventoryIsFoundByItsManifestOrItsChecksum(t *testing.T) {
	inWorld(t, func(w *world) {
		text := w.inventoryOf([]byte(threeRows)).text()
		w.putObject("x/manifest.json", text)
		w.putObject("x/manifest.checksum", []byte(fmt.Sprintf("%X \n", md5.Sum(text))))
		require.EqualValues(t, 3, w.runInventory(ledger.InventoryRequest{Bucket: "another", Key: "x/manifest.json"}).Counts.Created)
		require.EqualValues(t, 3, w.runInventory(ledger.InventoryRequest{Bucket: "another", Key: "x/manifest.checksum"}).Counts.Unchanged)
		w.putObject("x/manifest.json", append(text, ' '))
		_, err := w.newNode().StartInventory(w.Context(), ledger.InventoryRequest{Bucket: "another", Key: "x/manifest.checksum"})
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.ErrorContains(t, err, "has the MD5")
		_, err = w.newNode().StartInventory(w.Context(), ledger.InventoryRequest{Bucket: "another", Key: "none"})
		require.Equal(t, domain.NotFound, domain.KindOf(err))
	})
}

func TestInvalidManifestIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(m *inventory)
		want   string
	}{
		"ORC":                       {func(m *inventory) { m.Format = "ORC" }, "not supported"},
		"Parquet without a reader":  {func(m *inventory) { m.Format = "Parquet" }, "not supported"},
		"no format":                 {func(m *inventory) { m.Format = "" }, "not supported"},
		"no files":                  {func(m *inventory) { m.Files = nil }, "files: want 1 to 2000"},
		"a file without a key":      {func(m *inventory) { delete(m.Files[0], "key") }, "files/0"},
		"a sum that is no MD5":      {func(m *inventory) { m.Files[0]["MD5checksum"] = "12" }, "MD5checksum"},
		"no source":                 {func(m *inventory) { m.Source = "" }, "sourceBucket"},
		"no destination":            {func(m *inventory) { m.Destination = "" }, "destinationBucket"},
		"no time":                   {func(m *inventory) { m.Made = "" }, "creationTimestamp"},
		"a schema without keys":     {func(m *inventory) { m.Schema = "Bucket, Size" }, "no column Key"},
		"a schema with a key twice": {func(m *inventory) { m.Schema = "Key, Key" }, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				m := w.inventoryOf([]byte(threeRows))
				tc.change(&m)
				_, err := w.newNode().StartInventory(w.Context(), ledger.InventoryRequest{Manifest: m.text()})
				require.ErrorContains(t, err, tc.want)
				if strings.Contains(tc.want, "not supported") {
					require.ErrorIs(t, err, ledger.ErrUnsupportedFormat)
				} else {
					require.Equal(t, domain.Invalid, domain.KindOf(err))
				}
			})
		})
	}
	inWorld(t, func(w *world) {
		_, err := w.newNode().StartInventory(w.Context(), ledger.InventoryRequest{Manifest: []byte("[]")})
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		w.source.Remove("another", "data/0.csv.gz")
	})
}

func TestInvalidInventoryFileFailsTheJob(t *testing.T) {
	for name, tc := range map[string]struct {
		content []byte
		change  func(m *inventory)
		want    string
	}{
		"a wrong MD5":          {[]byte(threeRows), func(m *inventory) { m.Files[0]["MD5checksum"] = strings.Repeat("0", 32) }, "the manifest says 00000000"},
		"a gzip bomb":          {compress(strings.Repeat("\n", 80<<20)), nil, "a row has more than 1048576 bytes"},
		"gzip that is cut":     {compress(threeRows)[:20], nil, "unexpected EOF"},
		"a row of 2 MB":        {[]byte(`"bucket","` + strings.Repeat("k", 2<<20)), nil, "a row has more than"},
		"a row without a key":  {[]byte("bucket\n"), nil, "line 1 has no cell for the key"},
		"a header without key": {[]byte("Bucket,Key,Key\nbucket,a,b\n"), nil, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				m := w.inventoryOf(tc.content)
				if tc.change != nil {
					tc.change(&m)
				}
				job := w.importManifest(m)
				require.Equal(t, domain.JobFailed, job.State)
				require.Contains(t, job.Report, tc.want)
				require.Contains(t, job.Report, "data/0.csv.gz")
				require.Empty(t, w.state())
			})
		})
	}
}

func TestOnlyTheInvalidRowOfAnInventoryIsNamed(t *testing.T) {
	inWorld(t, func(w *world) {
		job := w.importManifest(w.inventoryOf([]byte(strings.Join([]string{
			`"bucket","a"`, `"other","b"`, `"bucket",""`, `"bucket","%zz"`, `"bucket","d",,,,-1`, `"bucket","e",,"perhaps"`, `"bucket","f",,,,,"yesterday"`, `"bucket","g%FF"`, `"bucket","h"`,
		}, "\n"))))
		require.Equal(t, domain.JobCompleted, job.State, job.Report)
		require.Equal(t, domain.JobCounts{Seen: 9, Created: 2, Refused: 7}, job.Counts)
		require.Len(t, job.Failures, 7)
		require.Equal(t, domain.JobFailure{Object: "b", Reason: `it is of bucket "other"`}, job.Failures[0])
		require.Equal(t, "a: C@0-01+\nh: C@0-01+\n", w.state())
	})
}

func TestInventoryReadsParquet(t *testing.T) {
	inWorld(t, func(w *world) {
		m := w.inventoryOf([]byte("content"))
		m.Format = "Parquet"
		read := func(r io.Reader, size int64) iter.Seq2[map[string]string, error] {
			return func(yield func(map[string]string, error) bool) {
				text, err := io.ReadAll(r)
				require.NoError(t, err)
				require.EqualValues(t, "content", text)
				require.EqualValues(t, len(text), size)
				_ = yield(map[string]string{"bucket": bucket, "key": "a+b", "version_id": "v", "is_latest": "true", "last_modified_date": "2026-01-01T00:00:00Z"}, nil) &&
					yield(nil, domain.Errorf(domain.Invalid, "the rest is damaged"))
			}
		}
		node := ledger.New(w.ports, ledger.Options{ReadParquet: read})
		defer w.runNode(w.Context(), node)()
		job, err := node.StartInventory(w.Context(), ledger.InventoryRequest{Manifest: m.text()})
		require.NoError(t, err)
		job = w.waitForEnd(node, job)
		require.Equal(t, domain.JobFailed, job.State)
		require.Contains(t, job.Report, "the rest is damaged")
	})
}

func TestInventoryWithoutStoresIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		m := w.inventoryOf([]byte(threeRows))
		w.ports.Source = nil
		_, err := w.newNode().StartInventory(w.Context(), ledger.InventoryRequest{Manifest: m.text()})
		require.ErrorIs(t, err, repository.ErrNoStore)
	})
}

// A slowSource is a Source whose reads take 20 seconds for up to 4 KB.
type slowSource struct{ repository.Source }

func (s slowSource) Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error) {
	r, err := s.Source.Open(ctx, name)
	return slowContent{r}, err
}

type slowContent struct{ io.ReadCloser }

func (c slowContent) Read(p []byte) (int, error) {
	<-time.After(20 * time.Second) // takes no real time in the synctest bubble
	return c.ReadCloser.Read(p[:min(len(p), 4<<10)])
}

// If it takes longer than a lease to read a file, no other node takes over the job.
func TestInventoryKeepsItsLeaseWhileItReads(t *testing.T) {
	inWorld(t, func(w *world) {
		m := w.inventoryOf([]byte(strings.Repeat("bucket,a\n", 4000)))
		w.ports.Source = slowSource{w.source}
		node := w.newNode()
		job, err := node.StartInventory(w.Context(), ledger.InventoryRequest{Manifest: m.text()})
		require.NoError(t, err)
		defer w.runNode(w.Context(), node)()
		<-time.After(time.Second)
		other := w.newNode()
		defer w.runNode(w.Context(), other)()
		ended := w.waitForEnd(other, job)
		require.Equal(t, domain.JobCompleted, ended.State, ended.Report)
		require.EqualValues(t, 1, ended.Lease.Number)
		require.Greater(t, ended.Ended.Sub(ended.Started), 5*time.Minute)
	})
}

func TestInventoryIsResumedByAnotherNode_AndAddsNothingTwice(t *testing.T) {
	files := make([][]byte, 2)
	for i := range files {
		var b strings.Builder
		for n := range 1200 {
			fmt.Fprintf(&b, "bucket,%d-%04d\n", i, n)
		}
		files[i] = compress(b.String())
	}
	for n, crashed := 1, true; crashed; n++ {
		inWorld(t, func(w *world) {
			m := w.inventoryOf(files...)
			dying, crash := context.WithCancel(w.Context())
			c := &crasher{Objects: w.objects, Jobs: w.jobs, n: n, after: n%2 == 0, crash: crash}
			healthy := w.newNode()
			w.ports.Objects, w.ports.Jobs = c, c
			node := w.newNode()
			job, err := node.StartInventory(w.Context(), ledger.InventoryRequest{Manifest: m.text()})
			require.NoError(t, err)
			stopFirst := w.runNode(dying, node)
			<-time.After(time.Second) // takes no real time in the synctest bubble
			defer w.runNode(w.Context(), healthy)()
			ended := w.waitForEnd(healthy, job)
			stopFirst()
			crash()
			crashed = c.n <= 0
			require.Equal(t, domain.JobCompleted, ended.State, ended.Report)
			require.EqualValues(t, 2400, ended.Counts.Seen)
			require.Equal(t, 2400, strings.Count(w.state(), "C@0-01+\n"))
		})
	}
}
