package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository/memory"
)

func clock() time.Time { return noon }

func TestLinkIsForTheCurrentContent(t *testing.T) {
	size := int64(100)
	facts := func(class string) domain.ObjectFacts {
		return domain.ObjectFacts{Size: &size, ETag: `"e"`, StorageClass: class}
	}
	created := domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer(t, "1"), ObjectFacts: facts("")}
	archived := created
	archived.StorageClass = domain.ClassGlacier
	deleted := domain.ObjectEvent{Type: domain.ObjectDeleted, Sequencer: sequencer(t, "2")}
	for _, tc := range []struct {
		name   string
		key    string
		events []domain.ObjectEvent
		stored domain.ObjectFacts
		eTag   string
		limit  int64
		want   ledger.LinkMissing
	}{
		{name: "there", events: []domain.ObjectEvent{created}, eTag: `"e"`},
		{name: "at the limit", events: []domain.ObjectEvent{created}, eTag: `"e"`, limit: 100},
		{name: "over the limit", events: []domain.ObjectEvent{created}, eTag: `"e"`, limit: 99, want: ledger.LinkTooLarge},
		{name: "deleted", events: []domain.ObjectEvent{created, deleted}, eTag: `"e"`, want: ledger.LinkDeleted},
		{name: "deleted in the store alone", events: []domain.ObjectEvent{created}, want: ledger.LinkDeleted},
		{name: "archived", events: []domain.ObjectEvent{archived}, eTag: `"e"`, want: ledger.LinkArchived},
		{name: "archived in the store alone", events: []domain.ObjectEvent{created}, eTag: `"e"`, stored: facts(domain.ClassDeepArchive), want: ledger.LinkArchived},
		{
			name: "archived by tiering in the store alone, as a listing does not say", events: []domain.ObjectEvent{created}, eTag: `"e"`,
			stored: domain.ObjectFacts{StorageClass: domain.ClassIntelligentTiering, ArchiveStatus: "ARCHIVE_ACCESS"}, want: ledger.LinkArchived,
		},
		{name: "another content in the store", events: []domain.ObjectEvent{created}, eTag: `"f"`, want: ledger.LinkChanged},
		{name: "a store without links", key: "in a folder", events: []domain.ObjectEvent{created}, eTag: `"e"`, want: ledger.LinkNoLinks},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := "a/é b.txt"
			if tc.key != "" {
				key = tc.key
			}
			objects, stored := memory.NewObjects(), newStore()
			service := ledger.New(ledger.Ports{Objects: objects, Source: stored}, ledger.Options{Clock: clock, LinkLimit: tc.limit})
			name := nameOf(t, "bucket", key)
			for _, e := range tc.events {
				ingest(t, objects, name, e)
			}
			stored.put(key, tc.eTag, tc.stored)
			got, err := service.Link(t.Context(), ledger.RowID{Name: name, Row: tc.events[0].ID()}, ledger.LinkRequest{Attachment: true, ContentType: "text/plain", Encoding: "gzip"})
			require.NoError(t, err)
			require.Equal(t, tc.want, got.Missing)
			if tc.want != "" {
				require.Equal(t, ledger.Link{Missing: tc.want}, got)
				return
			}
			require.Equal(t, "https://store.test/"+key+"?version=null", got.URL)
			require.Equal(t, noon.Add(7*24*time.Hour), got.Expires)
			require.Equal(t, `attachment; filename*=utf-8''%C3%A9%20b.txt`, stored.linked.Disposition)
			require.Equal(t, [2]string{"text/plain", "gzip"}, [2]string{stored.linked.ContentType, stored.linked.ContentEncoding})
		})
	}
}

func TestLinkRequiresACurrentRow(t *testing.T) {
	objects, stored := memory.NewObjects(), newStore()
	service := ledger.New(ledger.Ports{Objects: objects, Source: stored}, ledger.Options{Clock: clock, LinkTime: 500 * time.Second})
	name := nameOf(t, "bucket", "a")
	first := domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer(t, "1")}
	second := domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer(t, "2"), ObjectFacts: domain.ObjectFacts{ETag: `"2"`}}
	ingest(t, objects, name, first)
	ingest(t, objects, name, second)
	stored.put("a", `"2"`, domain.ObjectFacts{})
	got, err := service.Link(t.Context(), ledger.RowID{Name: name, Row: first.ID()}, ledger.LinkRequest{})
	require.NoError(t, err)
	require.Equal(t, ledger.Link{Missing: ledger.LinkNotCurrent}, got)
	current := ledger.RowID{Name: name, Row: second.ID()}
	got, err = service.Link(t.Context(), current, ledger.LinkRequest{Expires: time.Minute})
	require.NoError(t, err)
	require.Equal(t, noon.Add(time.Minute), got.Expires)
	require.Equal(t, `inline; filename=a`, stored.linked.Disposition)
	got, err = service.Link(t.Context(), current, ledger.LinkRequest{})
	require.NoError(t, err)
	require.Equal(t, 500*time.Second, stored.linked.Expires)
	require.Equal(t, noon.Add(500*time.Second), got.Expires)
}

func TestLinkFailures(t *testing.T) {
	objects, stored := memory.NewObjects(), newStore()
	service := ledger.New(ledger.Ports{Objects: objects, Source: stored}, ledger.Options{LinkTime: time.Hour})
	name, elsewhere := nameOf(t, "bucket", "a"), nameOf(t, "elsewhere", "a")
	created := domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer(t, "1")}
	here, there := ledger.RowID{Name: name, Row: created.ID()}, ledger.RowID{Name: elsewhere, Row: created.ID()}
	_, err := service.Link(t.Context(), here, ledger.LinkRequest{})
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	ingest(t, objects, name, created)
	ingest(t, objects, elsewhere, created)
	for _, expires := range []time.Duration{-time.Second, time.Millisecond, time.Hour + 1} {
		_, err = service.Link(t.Context(), here, ledger.LinkRequest{Expires: expires})
		require.Equal(t, domain.Invalid, domain.KindOf(err))
	}
	stored.failing = []error{domain.Errorf(domain.Busy, "throttled"), errors.New("unknown")}
	for _, kind := range []domain.Kind{domain.Busy, domain.Unknown} {
		_, err = service.Link(t.Context(), here, ledger.LinkRequest{})
		require.Equal(t, kind, domain.KindOf(err))
	}
	got, err := service.Link(t.Context(), there, ledger.LinkRequest{})
	require.NoError(t, err)
	require.Equal(t, ledger.LinkNoStore, got.Missing)
	got, err = ledger.New(ledger.Ports{Objects: objects}, ledger.Options{}).Link(t.Context(), here, ledger.LinkRequest{})
	require.NoError(t, err)
	require.Equal(t, ledger.LinkNoStore, got.Missing)
}

// For any key, browsers accept the file name that a link contains.
func TestLinkNamesItsFile(t *testing.T) {
	objects, stored := memory.NewObjects(), newStore()
	service := ledger.New(ledger.Ports{Objects: objects, Source: stored}, ledger.Options{})
	for key, want := range map[string]string{
		"a.txt":            `inline; filename=a.txt`,
		"dir/a b.txt":      `inline; filename="a b.txt"`,
		`dir/"a"\b`:        `inline; filename="\"a\"\\b"`,
		"dir/a;b=c":        `inline; filename="a;b=c"`,
		"dir/日本.txt":       `inline; filename*=utf-8''%E6%97%A5%E6%9C%AC.txt`,
		"dir/a\r\nX: y":    `inline; filename*=utf-8''a%0D%0AX%3A%20y`,
		"dir/100% sure":    `inline; filename="100% sure"`,
		"dir/":             `inline`,
		"dir/..":           `inline`,
		"é/" + "plain.bin": `inline; filename=plain.bin`,
	} {
		name := nameOf(t, "bucket", key)
		e := domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer(t, "1")}
		ingest(t, objects, name, e)
		stored.put(key, `"e"`, domain.ObjectFacts{})
		_, err := service.Link(t.Context(), ledger.RowID{Name: name, Row: e.ID()}, ledger.LinkRequest{})
		require.NoError(t, err)
		require.Equal(t, want, stored.linked.Disposition, "%q", key)
	}
}
