package repositorytest

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

type objectRule struct {
	name string
	test func(f *objectFixture)
}

// RunObjects checks an implementation against the contract of repository.Objects, and against the test
// tables of the filemanager.
func RunObjects(t *testing.T, open func(t *testing.T) repository.Objects) {
	for _, topic := range []struct {
		name  string
		rules []objectRule
	}{
		{"Object", objectRules},
		{"Exists", objectExistsRules},
		{"History", historyRules},
		{"List", listRules},
		{"Range", rangeRules},
		{"Amend", amendRules},
		{"Race", objectRaceRules},
		{"Doubt", doubtRules},
	} {
		t.Run(topic.name, func(t *testing.T) {
			for _, r := range topic.rules {
				t.Run(r.name, func(t *testing.T) { r.test(newObjectFixture(t, open)) })
			}
		})
	}
	t.Run("Table", func(t *testing.T) {
		f := newObjectFixture(t, open)
		for _, table := range slices.Concat(objecttest.NativeTables, objecttest.NullTables) {
			t.Run(table.Name, func(t *testing.T) {
				f := f.copyFor(t)
				f.ingestScript(table.Script)
				require.Equal(t, table.Want, f.describeRows())
			})
		}
		for _, table := range objecttest.PairTables {
			t.Run(table.Name, func(t *testing.T) {
				f := f.copyFor(t)
				f.ingestScript(table.Script)
				require.Equal(t, table.Want, objecttest.DescribePairs(f.readHistory()))
			})
		}
	})
}

// An objectFixture is the environment of a case. No other case uses its bucket or its object. Its
// methods fail the test if a call fails.
type objectFixture struct {
	*testing.T
	repository.Objects
	ctx    context.Context
	bucket string
	name   domain.ObjectName
}

func newObjectFixture(t *testing.T, open func(t *testing.T) repository.Objects) *objectFixture {
	f := &objectFixture{T: t, Objects: open(t), ctx: t.Context(), bucket: NewActor().String()}
	f.name = f.objectName("key")
	return f
}

// copyFor returns a fixture of the same store for another test, with another bucket.
func (f *objectFixture) copyFor(t *testing.T) *objectFixture {
	return newObjectFixture(t, func(*testing.T) repository.Objects { return f.Objects })
}

// objectName returns the name of an object in the bucket of the case.
func (f *objectFixture) objectName(key string) domain.ObjectName {
	f.Helper()
	name, err := domain.ParseObjectName(f.bucket, key)
	require.NoError(f, err)
	return name
}

// ingestReports ingests the events of one call, and requires that each has an outcome.
func (f *objectFixture) ingestReports(reports ...repository.ObjectReport) []domain.ObjectOutcome {
	f.Helper()
	results, err := f.Ingest(f.ctx, reports)
	require.NoError(f, err)
	require.Len(f, results, len(reports))
	outcomes := make([]domain.ObjectOutcome, len(results))
	for i, r := range results {
		require.NoError(f, r.Err)
		outcomes[i] = r.Outcome
	}
	return outcomes
}

// ingestScript ingests each call of a script.
func (f *objectFixture) ingestScript(script string) {
	f.Helper()
	for _, events := range objecttest.Calls(script) {
		f.ingestReports(f.toReports(events...)...)
	}
}

// toReports returns events as reports of the case's object.
func (f *objectFixture) toReports(events ...domain.ObjectEvent) []repository.ObjectReport {
	return reportsOf(f.name, events...)
}

func reportsOf(name domain.ObjectName, events ...domain.ObjectEvent) []repository.ObjectReport {
	reports := make([]repository.ObjectReport, len(events))
	for i, e := range events {
		reports[i] = repository.ObjectReport{Name: name, ObjectEvent: e}
	}
	return reports
}

// readObject returns the object of the case.
func (f *objectFixture) readObject() domain.Object {
	f.Helper()
	o, err := f.Object(f.ctx, f.name)
	require.NoError(f, err)
	require.Equal(f, f.name, o.Name)
	return o
}

// readHistory returns all rows of the object in order, and compares the object with them.
func (f *objectFixture) readHistory() []domain.ObjectRow {
	f.Helper()
	const limit = 7
	var rows []domain.ObjectRow
	var below domain.ObjectOrder
	for {
		page, err := f.History(f.ctx, f.name, below, limit)
		require.NoError(f, err)
		rows = append(rows, page...)
		if len(page) < limit {
			break
		}
		below = page[limit-1].Order()
	}
	slices.Reverse(rows)
	f.checkObject(rows)
	return rows
}

// checkObject requires that the object has the state that results from all of its rows.
func (f *objectFixture) checkObject(rows []domain.ObjectRow) {
	f.Helper()
	o := f.readObject()
	require.True(f, slices.IsSortedFunc(rows, domain.CompareObjectRows))
	require.EqualValues(f, len(rows), o.Events)
	ids := make(map[domain.ObjectRowID]bool)
	var duplicates int64
	for i := range rows {
		require.False(f, ids[rows[i].ID()], "two rows of one event")
		ids[rows[i].ID()] = true
		duplicates += rows[i].Duplicates
	}
	require.Equal(f, duplicates, o.Duplicates)
	i := domain.CurrentRow(rows)
	if i < 0 {
		require.Nil(f, o.Current)
		return
	}
	require.NotNil(f, o.Current)
	require.Equal(f, rows[i].ID(), o.Current.ID())
	require.Equal(f, rows[i].Duplicates, o.Current.Duplicates)
}

// describeRows formats the rows of the object as a table.
func (f *objectFixture) describeRows() string {
	f.Helper()
	return objecttest.Describe(f.readHistory(), f.readObject().Current)
}

var objectRules = []objectRule{
	{"AnObjectWithoutEventsIsNotFound", func(f *objectFixture) {
		_, err := f.Object(f.ctx, f.name)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		_, err = f.History(f.ctx, f.name, domain.ObjectOrder{}, 10)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		require.Empty(f, f.ingestReports())
	}},
	{"AllMembersOfAnEventAreKept", func(f *objectFixture) {
		size := int64(math.MaxInt64)
		native := objecttest.Calls("[C@C1/V]")[0][0]
		native.Time = time.Date(2026, 1, 2, 3, 4, 5, 123456700, time.UTC)
		native.ObjectFacts = domain.ObjectFacts{
			Size: &size, ETag: `W/"é"`, SHA256: "sha", StorageClass: domain.ClassGlacier, ArchiveStatus: "ARCHIVE_ACCESS",
			LastModified: native.Time.Add(-time.Hour), Reason: domain.CreatedCopy, IngestID: "ingest", Attributes: `{"a":{"b":[1,"é"]}}`,
		}
		marker := objecttest.Calls("[M@-/W!]")[0][0]
		marker.Carrier = domain.Carrier{Message: "message", Index: 4}
		f.ingestReports(f.toReports(native)...)
		o := f.readObject()
		require.Equal(f, native, o.Current.ObjectEvent)
		f.ingestReports(f.toReports(marker)...)
		rows := f.readHistory()
		require.Len(f, rows, 2)
		require.Equal(f, native, rows[0].ObjectEvent)
		require.Equal(f, marker, rows[1].ObjectEvent)
		require.Equal(f, native.Sequencer, rows[1].Base)
	}},
	{"UnknownFactsRemainUnknown", func(f *objectFixture) {
		var empty int64
		events := objecttest.Calls("[C@C1!, C@C2!]")[0]
		events[1].Size = &empty
		f.ingestReports(f.toReports(events...)...)
		rows := f.readHistory()
		require.Equal(f, events[0], rows[0].ObjectEvent)
		require.Equal(f, events[1], rows[1].ObjectEvent)
	}},
	{"AnEventOfEachObjectOfACallIsStored", func(f *objectFixture) {
		keys := []string{"a", "a/", "A", "é", "a b+%2F\x00\n", strings.Repeat("日", 1024), strings.Repeat("k", 1024), strings.Repeat("k", 1023) + "l"}
		e := objecttest.Calls("[C@C1]")[0][0]
		var reports []repository.ObjectReport
		for _, key := range keys {
			reports = append(reports, reportsOf(f.objectName(key), e)...)
		}
		for range 2 {
			f.ingestReports(reports...)
		}
		for _, key := range keys {
			f.name = f.objectName(key)
			require.Equal(f, "C@C1+1", f.describeRows())
		}
	}},
	{"AnObjectOfAnotherBucketIsAnotherObject", func(f *objectFixture) {
		e := objecttest.Calls("[C@C1]")[0][0]
		f.ingestReports(f.toReports(e)...)
		other := f.copyFor(f.T)
		_, err := other.Object(f.ctx, other.name)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
	}},
	{"TheOutcomeOfEachEventIsReturned", func(f *objectFixture) {
		stored, duplicate := domain.ObjectStored, domain.ObjectDuplicate
		events := objecttest.Calls("[D@D1, C@C1, C@C1, C@-]")[0]
		require.Equal(f, []domain.ObjectOutcome{stored, stored, duplicate, stored}, f.ingestReports(f.toReports(events...)...))
		require.Equal(f, []domain.ObjectOutcome{duplicate, duplicate, duplicate, duplicate}, f.ingestReports(f.toReports(events...)...))
	}},
	{"SequencersOfAzureAreOpaque_AndTwoLengthsAreDoubtful", func(f *objectFixture) {
		for _, text := range []string{"000000000000000000000000000089A4000000000018d6ea", "00000000000004420000000000028963"} {
			s, err := domain.ParseSequencer(domain.OpaqueSequencer, text)
			require.NoError(f, err)
			require.False(f, f.requireDoubt())
			f.ingestReports(f.toReports(domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: s})...)
		}
		require.True(f, f.requireDoubt())
		require.Equal(f, "000000000000000000000000000089A4000000000018d6ea", f.readObject().Current.SequencerText())
	}},
	{"ReturnedValuesAreCopies", func(f *objectFixture) {
		f.ingestScript("[C@C1]")
		o := f.readObject()
		o.Current.ETag, o.Rows[0].ETag = "changed", "changed"
		require.Empty(f, f.readObject().Current.ETag)
		require.Empty(f, f.readHistory()[0].ETag)
	}},
	{"ACallWhoseContextHasEndedFails", func(f *objectFixture) {
		f.ingestScript("[C@C1]")
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.Ingest(ended, f.toReports(objecttest.Calls("[C@C2]")[0]...))
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.Object(ended, f.name)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.History(ended, f.name, domain.ObjectOrder{}, 1)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.List(ended, repository.ObjectRange{Bucket: f.bucket}, 1)
		require.ErrorIs(f, err, context.Canceled)
		require.Equal(f, "C@C1+", f.describeRows())
	}},
}

func (f *objectFixture) requireDoubt() bool {
	o, err := f.Object(f.ctx, f.name)
	return err == nil && o.Doubt
}
