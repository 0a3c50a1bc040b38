package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
)

// rowsOf returns all rows of an object, the newest first.
func (f *fixture) rowsOf(bucket, key string) []domain.ObjectRow {
	f.Helper()
	rows, err := f.store.History(f.Context(), f.name(bucket, key), domain.ObjectOrder{}, 10_000)
	require.NoError(f, err)
	return rows
}

// Clients store row ids, so the form of the ids must not change.
func TestRowIDsKeepTheirForm(t *testing.T) {
	f := newFixture(t)
	f.ingest("bucket", "a key/é", "[C@00e4/v1] [D@-]")
	rows := f.rowsOf("bucket", "a key/é")
	for i, want := range []string{"AQZidWNrZXQIYSBrZXkvw6kCCW1lc3NhZ2UtMQA", "AQZidWNrZXQIYSBrZXkvw6kBAQJ2MQQwMEU0"} {
		for _, r := range rows {
			if (i == 0) == r.IsGenerated() {
				id := ledger.RowID{Name: f.name("bucket", "a key/é"), Row: r.ID()}
				require.Equal(t, want, id.String())
				parsed, err := ledger.ParseRowID(want)
				require.NoError(t, err)
				require.Equal(t, id, parsed)
			}
		}
	}
}

func TestRowIDs_IdentifyAnyRow(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{"k", "\x00", strings.Repeat("日", 1024)} {
		f.ingest("b", key, "[C@C1/"+strings.Repeat("v", 1024)+"] [D@D1] [M@-/w] [C@-!]")
		for _, r := range f.rowsOf("b", key) {
			id := ledger.RowID{Name: f.name("b", key), Row: r.ID()}
			parsed, err := ledger.ParseRowID(id.String())
			require.NoError(t, err)
			require.Equal(t, id, parsed)
			found, err := f.Find(t.Context(), parsed)
			require.NoError(t, err)
			require.Equal(t, r, found.ObjectRow)
		}
	}
}

func TestTheIDOfAnObject_NamesItsCurrentRow(t *testing.T) {
	f := newFixture(t)
	f.ingest("b", "k", "[C@01] [C@02]")
	id := ledger.RowID{Name: f.name("b", "k")}
	parsed, err := ledger.ParseRowID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, parsed)
	found, err := f.Find(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, f.rowsOf("b", "k")[0], found.ObjectRow)
	f.ingest("b", "k", "[D@03]")
	_, err = f.Find(t.Context(), id)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	page, err := f.History(t.Context(), id, 10, "")
	require.NoError(t, err)
	require.Len(t, page.Rows, 3)
	_, err = f.History(t.Context(), ledger.RowID{Name: f.name("b", "other")}, 10, "")
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}

func TestRowIDs_RefuseOtherText(t *testing.T) {
	const id = "AQZidWNrZXQIYSBrZXkvw6kBAQJ2MQQwMEU0"
	for _, text := range []string{"", "x", "!", id + "A", id + "AA", id[:len(id)-4], "Ag" + id[2:], "AQ", "AQZidWNrZXQA", "AQD_____________________w", id + "=", strings.ToLower(id)} {
		_, err := ledger.ParseRowID(text)
		require.Equal(t, domain.Invalid, domain.KindOf(err), text)
	}
}

func FuzzRowID(f *testing.F) {
	f.Add("AQZidWNrZXQIYSBrZXkvw6kBAQJ2MQQwMEU0")
	f.Add("AQZidWNrZXQIYSBrZXkvw6kCCW1lc3NhZ2UtMQA")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ledger.ParseRowID(text)
		if err != nil {
			require.Equal(t, domain.Invalid, domain.KindOf(err))
			return
		}
		require.Equal(t, text, id.String())
	})
}

func TestFind_ReturnsWhetherARowIsCurrent(t *testing.T) {
	f := newFixture(t)
	f.ingest("b", "k", "[C@01] [C@02]")
	rows := f.rowsOf("b", "k")
	for i, r := range rows {
		row, err := f.Find(t.Context(), ledger.RowID{Name: f.name("b", "k"), Row: r.ID()})
		require.NoError(t, err)
		require.Equal(t, i == 0, row.IsCurrent)
		require.Equal(t, i == 0, row.IsAccessible())
	}
	for _, id := range []ledger.RowID{{Name: f.name("b", "k"), Row: domain.ObjectRowID{Type: 1, Sequencer: "03"}}, {Name: f.name("b", "other"), Row: rows[0].ID()}} {
		_, err := f.Find(t.Context(), id)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		_, err = f.History(t.Context(), id, 0, "")
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		_, err = f.Pairs(t.Context(), id)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
	}
}

func TestHistory_ReturnsPagesAndPairs(t *testing.T) {
	f := newFixture(t)
	var want []string
	for i := range 9 {
		f.ingest("b", "k", fmt.Sprintf("[C@%02d] [D@%02d]", 2*i, 2*i+1))
		want = append([]string{fmt.Sprintf("b/k@%02d", 2*i+1), fmt.Sprintf("b/k@%02d", 2*i)}, want...)
	}
	id := ledger.RowID{Name: f.name("b", "k"), Row: f.rowsOf("b", "k")[5].ID()}
	for _, limit := range []int{0, 1, 5, 17, 18, 19} {
		var got []string
		token := ""
		for {
			page, err := f.History(t.Context(), id, limit, token)
			require.NoError(t, err)
			for i := range page.Rows {
				got = append(got, describe(&page.Rows[i]))
			}
			if token = page.Next; token == "" {
				break
			}
		}
		require.Equal(t, want, got, limit)
	}
	pairs, err := f.Pairs(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, pairs, 9)
	require.Equal(t, want[0], describe(pairs[0].Deleted))
	require.Equal(t, want[1], describe(pairs[0].Created))
	_, err = f.History(t.Context(), id, 1001, "")
	require.Equal(t, domain.Invalid, domain.KindOf(err))
	page, err := f.History(t.Context(), id, 1, "")
	require.NoError(t, err)
	id.Row = f.rowsOf("b", "k")[6].ID()
	_, err = f.History(t.Context(), id, 1, page.Next)
	require.ErrorContains(t, err, "of another query")
}

func TestPairs_IncludeEachRowOnce(t *testing.T) {
	f := newFixture(t)
	for i, table := range objecttest.PairTables {
		key := fmt.Sprint("k", i)
		f.ingest("b", key, table.Script)
		rows := f.rowsOf("b", key)
		pairs, err := f.Pairs(t.Context(), ledger.RowID{Name: f.name("b", key), Row: rows[0].ID()})
		require.NoError(t, err)
		var want []string
		for _, r := range rows {
			want = append(want, r.SequencerText())
		}
		var got []string
		for _, p := range pairs {
			require.True(t, p.Created != nil || p.Deleted != nil)
			for _, r := range []*ledger.Row{p.Created, p.Deleted} {
				if r != nil {
					got = append(got, r.SequencerText())
				}
			}
		}
		require.ElementsMatch(t, want, got, table.Name)
	}
}
