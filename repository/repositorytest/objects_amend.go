package repositorytest

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// setLabel returns a change that sets the attributes to a text.
func setLabel(text string) func(domain.ObjectFacts) (domain.ObjectFacts, error) {
	return func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
		facts.Attributes = text
		return facts, nil
	}
}

// amendRow amends a row of the object of the case.
func (f *objectFixture) amendRow(id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) domain.ObjectRow {
	f.Helper()
	row, err := f.Amend(f.ctx, f.name, id, change)
	require.NoError(f, err)
	return row
}

var amendRules = []objectRule{
	{"TheCurrentRowIsAmended", func(f *objectFixture) {
		f.ingestScript("[C@C1] [C@C2]")
		row := f.amendRow(domain.ObjectRowID{}, func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
			facts.IngestID, facts.Attributes = "id", `{"a":1}`
			return facts, nil
		})
		require.Equal(f, "id", row.IngestID)
		require.Equal(f, row, *f.readObject().Current)
		rows := f.readHistory()
		require.Equal(f, row, rows[1])
		require.Empty(f, rows[0].Attributes)
		require.Equal(f, []string{f.name.Key()}, f.listKeys(repository.ObjectRange{OnlyCurrent: true, Matches: []repository.ObjectMatch{{Field: domain.FieldIngestID, Values: []string{"id"}}}}, 10))
	}},
	{"EachRowOfManyIsReadAndAmended", func(f *objectFixture) {
		f.ingestScript("[C@0001/old]")
		for i := range 40 {
			f.ingestScript(fmt.Sprintf("[C@%04X/v%d]", 2*i+2, i))
			f.ingestScript(fmt.Sprintf("[D@%04X/v%d]", 2*i+3, i))
		}
		f.ingestScript("[C@-/old]")
		rows := f.readHistory()
		require.Len(f, rows, 82)
		for i := range rows {
			want := rows[i]
			want.Attributes = fmt.Sprint(i)
			require.Equal(f, want.ObjectEvent, f.amendRow(rows[i].ID(), setLabel(want.Attributes)).ObjectEvent)
			got, err := f.Row(f.ctx, f.name, rows[i].ID())
			require.NoError(f, err)
			require.Equal(f, want.ObjectEvent, got.ObjectEvent)
		}
		for i, r := range f.readHistory() {
			require.Equal(f, fmt.Sprint(i), r.Attributes)
		}
	}},
	{"TheCurrentRowIsAmended_WhereverItIs", func(f *objectFixture) {
		f.ingestScript("[C@0001/old]")
		for i := range 40 {
			f.ingestScript(fmt.Sprintf("[C@%04X/v%d]", 2*i+2, i))
			f.ingestScript(fmt.Sprintf("[D@%04X/v%d]", 2*i+3, i))
			attributes := fmt.Sprint(i)
			require.Equal(f, "old", f.amendRow(domain.ObjectRowID{}, setLabel(attributes)).Version.String())
			require.Equal(f, attributes, f.readObject().Current.Attributes)
			require.Equal(f, attributes, f.readHistory()[0].Attributes)
		}
		f.ingestScript("[D@0001/old]")
		require.Nil(f, f.readObject().Current)
	}},
	{"AChangeThatFailsChangesNothing", func(f *objectFixture) {
		f.ingestScript("[C@C1]")
		f.amendRow(domain.ObjectRowID{}, setLabel("before"))
		failure := domain.Errorf(domain.Invalid, "no")
		_, err := f.Amend(f.ctx, f.name, domain.ObjectRowID{}, func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
			facts.Attributes = "after"
			return facts, failure
		})
		require.ErrorIs(f, err, failure)
		require.Equal(f, domain.Invalid, domain.KindOf(err))
		require.Equal(f, "before", f.readHistory()[0].Attributes)
	}},
	{"AMissingRowIsNotAmended", func(f *objectFixture) {
		fails := func(id domain.ObjectRowID) {
			_, err := f.Amend(f.ctx, f.name, id, setLabel("x"))
			require.Equal(f, domain.NotFound, domain.KindOf(err))
			_, err = f.Row(f.ctx, f.name, domain.ObjectRowID{Sequencer: "none"})
			require.Equal(f, domain.NotFound, domain.KindOf(err))
		}
		fails(domain.ObjectRowID{})
		f.ingestScript("[C@C1]")
		fails(domain.ObjectRowID{Type: domain.ObjectCreated, Sequencer: "00"})
		for i := range 40 {
			f.ingestScript(fmt.Sprintf("[D@%04X/v%d]", 2*i+2, i))
		}
		f.ingestScript("[D@FF]")
		fails(domain.ObjectRowID{Type: domain.ObjectCreated, Sequencer: "00"})
		fails(domain.ObjectRowID{})
	}},
	{"AnAmendmentWithAnEndedContextFails", func(f *objectFixture) {
		f.ingestScript("[C@C1]")
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.Amend(ended, f.name, domain.ObjectRowID{}, setLabel("x"))
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.Row(ended, f.name, domain.ObjectRowID{})
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.Count(ended, repository.ObjectRange{Bucket: f.bucket})
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.Buckets(ended)
		require.ErrorIs(f, err, context.Canceled)
	}},
	{"AmendmentsAndEventsAtOnceAreAllKept", func(f *objectFixture) {
		const each = 8
		f.ingestScript("[C@0001]")
		add := func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
			facts.Attributes += "x"
			return facts, nil
		}
		first := f.readHistory()[0].ID()
		f.runTogether(4, func(caller int) {
			for i := range each {
				var err error
				if caller%2 == 0 {
					_, err = f.Amend(f.ctx, f.name, first, add)
				} else {
					e := objecttest.Calls(fmt.Sprintf("[C@%04X]", 2+4*i+caller))[0][0]
					var results []repository.ObjectResult
					if results, err = f.Ingest(f.ctx, f.toReports(e)); err == nil {
						err = results[0].Err
					}
				}
				if err != nil {
					f.Error(err)
				}
			}
		})
		rows := f.readHistory()
		require.Len(f, rows, 1+2*each)
		require.Len(f, rows[0].Attributes, 2*each)
	}},
}
