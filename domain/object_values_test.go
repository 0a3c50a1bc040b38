package domain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

func TestObjectName(t *testing.T) {
	for _, key := range []string{"k", " a+b%20/é\x00", strings.Repeat("日", 1024)} {
		n, err := domain.ParseObjectName("bucket", key)
		require.NoError(t, err)
		require.Equal(t, "bucket", n.Bucket())
		require.Equal(t, key, n.Key())
	}
	for _, tc := range []struct{ bucket, key, want string }{
		{"", "k", "bucket: want 1 to 255 bytes, got 0"},
		{strings.Repeat("b", 256), "k", "bucket: want 1 to 255 bytes, got 256"},
		{"b\xff", "k", `bucket: want UTF-8, got "b\xff"`},
		{"b", "", "key: want 1 to 1024 characters, got 0"},
		{"b", strings.Repeat("日", 1025), "key: want 1 to 1024 characters, got 1025"},
		{"b", "k\xff", `key: want UTF-8, got "k\xff"`},
	} {
		_, err := domain.ParseObjectName(tc.bucket, tc.key)
		requireInvalid(t, err, tc.want)
	}
	names := []domain.ObjectName{
		must(domain.ParseObjectName("b", "a")), must(domain.ParseObjectName("b", "a/")), must(domain.ParseObjectName("b", "é")),
		must(domain.ParseObjectName("c", "a")),
	}
	require.True(t, slices.IsSortedFunc(names, domain.CompareObjectNames))
}

// TestVersionID tests rule FM-24: an event without a version has the null version.
func TestVersionID(t *testing.T) {
	require.Equal(t, "null", must(domain.ParseVersionID("")).String())
	require.Equal(t, domain.VersionID{}, must(domain.ParseVersionID("null")))
	require.Equal(t, "096fKK", must(domain.ParseVersionID("096fKK")).String())
	_, err := domain.ParseVersionID(strings.Repeat("v", 1025))
	requireInvalid(t, err, "version id: want at most 1024 bytes, got 1025")
	_, err = domain.ParseVersionID("v\xff")
	requireInvalid(t, err, `version id: want UTF-8, got "v\xff"`)
}

func TestSequencerIsRefused(t *testing.T) {
	for _, tc := range []struct {
		form       domain.SequencerForm
		text, want string
	}{
		{domain.HexSequencer, "", "sequencer: want 1 to 64 characters, got 0"},
		{domain.HexSequencer, strings.Repeat("0", 65), "sequencer: want 1 to 64 characters, got 65"},
		{domain.OpaqueSequencer, strings.Repeat("0", 65), "sequencer: want 1 to 64 characters, got 65"},
		{domain.HexSequencer, "0G", `sequencer: want hexadecimal digits, got "0G"`},
		{domain.OpaqueSequencer, "\xff", `sequencer: want UTF-8, got "\xff"`},
	} {
		_, err := domain.ParseSequencer(tc.form, tc.text)
		requireInvalid(t, err, tc.want)
	}
	require.True(t, domain.Sequencer{}.IsNull())
	require.Zero(t, domain.Sequencer{}.Form())
}

// TestSequencerOrder requires that the sequencers in each list are in ascending order.
func TestSequencerOrder(t *testing.T) {
	for _, tc := range []struct {
		name  string
		form  domain.SequencerForm
		texts []string
	}{
		{"hexadecimal text is padded on the right", domain.HexSequencer, []string{"0", "0055AED6DCD90281E4", "0055aed6dcd90281e47", "0055AED6DCD90281E5", "01", "055", "10", "9", "a", "B"}},
		{"opaque text compares byte by byte", domain.OpaqueSequencer, []string{"0000000000000281000000000002F5CA", "00000000000004420000000000028963", "0000000000000442000000000002896a"}},
		{"opaque text that is longer is later", domain.OpaqueSequencer, []string{"z", "00000000000004420000000000028963", "000000000000000000000000000089A4000000000018d6ea"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tryOrders(newRNG(1), len(tc.texts), func(order []int) {
				s := newObjectStore(t, domain.ObjectLimits{})
				for _, i := range order {
					s.ingestCalls([]domain.ObjectEvent{{Type: domain.ObjectCreated, Sequencer: must(domain.ParseSequencer(tc.form, tc.texts[i]))}})
				}
				var got []string
				for _, r := range s.rows() {
					got = append(got, r.SequencerText())
					require.Equal(t, tc.form, r.Sequencer.Form())
				}
				if !slices.Equal(tc.texts, got) {
					require.Equal(t, tc.texts, got, "order %v", order)
				}
			})
		})
	}
}

func TestSequencerIdentity(t *testing.T) {
	for _, tc := range []struct {
		form domain.SequencerForm
		a, b string
		same bool
	}{
		{domain.HexSequencer, "00e4", "00E4", true},
		{domain.HexSequencer, "E4", "E40", false},
		{domain.OpaqueSequencer, "00e4", "00E4", false},
	} {
		s := newObjectStore(t, domain.ObjectLimits{Rows: 1})
		for _, text := range []string{tc.a, tc.b, tc.a} {
			s.ingestCalls([]domain.ObjectEvent{{Type: domain.ObjectCreated, Sequencer: must(domain.ParseSequencer(tc.form, text))}})
			s.checkObject()
		}
		require.Equal(t, tc.same, s.object.Events == 1, "%s and %s", tc.a, tc.b)
	}
}

func TestObjectWithSequencersOfUnknownOrderIsDoubtful(t *testing.T) {
	for _, tc := range []struct {
		name string
		want bool
		all  []domain.Sequencer
	}{
		{"one length", false, []domain.Sequencer{must(domain.ParseSequencer(domain.OpaqueSequencer, "00")), must(domain.ParseSequencer(domain.OpaqueSequencer, "zz"))}},
		{"two lengths", true, []domain.Sequencer{must(domain.ParseSequencer(domain.OpaqueSequencer, "00")), must(domain.ParseSequencer(domain.OpaqueSequencer, "000"))}},
		{"two lengths of AWS", false, []domain.Sequencer{must(domain.ParseSequencer(domain.HexSequencer, "00")), must(domain.ParseSequencer(domain.HexSequencer, "000"))}},
		{"two forms", true, []domain.Sequencer{must(domain.ParseSequencer(domain.HexSequencer, "00")), must(domain.ParseSequencer(domain.OpaqueSequencer, "00"))}},
		{"the base of a null sequencer, and a longer one", true, []domain.Sequencer{must(domain.ParseSequencer(domain.OpaqueSequencer, "00")), {}, must(domain.ParseSequencer(domain.OpaqueSequencer, "000"))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, limits := range limitsOfTables {
				s := newObjectStore(t, limits)
				for i, sequencer := range tc.all {
					s.ingestCalls([]domain.ObjectEvent{{Type: domain.ObjectCreated, Sequencer: sequencer, Carrier: domain.Carrier{Index: i}}})
				}
				require.Equal(t, tc.want, s.object.Doubt)
			}
		})
	}
}

// TestGeneratedSequencerText tests rule FM-30: the rows are in order, although their texts are not.
func TestGeneratedSequencerText(t *testing.T) {
	const zeros = "000000000000000000000000000000"
	for _, tc := range []struct {
		script string
		want   []string
	}{
		{"[C@123] [C@-] [C@-] [C@1245]", []string{"123", "123" + zeros[3:] + "-0100000000000000", "123" + zeros[3:] + "-0200000000000000", "1245"}},
		{"[C@" + zeros[1:] + "1] [C@-]", []string{zeros[1:] + "1", zeros[1:] + "1-0100000000000000"}},
		{"[C@" + zeros + "1] [C@-]", []string{zeros + "1", zeros + "1-0100000000000000"}},
		{"[C@-]", []string{zeros + "-0100000000000000"}},
		{"[C@-] [C@Z] [C@C1] [C@N] [D@D1] [C@C2] [D@D2]", append([]string{zeros + "-0100000000000000"}, objecttest.Sequencers["Z"], objecttest.Sequencers["C1"], objecttest.Sequencers["N"], objecttest.Sequencers["D1"], objecttest.Sequencers["C2"], objecttest.Sequencers["D2"])},
	} {
		s := newObjectStore(t, domain.ObjectLimits{})
		for _, events := range objecttest.Calls(tc.script) {
			s.ingestCalls(events)
		}
		var got []string
		for _, r := range s.rows() {
			got = append(got, r.SequencerText())
		}
		require.Equal(t, tc.want, got)
	}
}

// TestQuoteETag tests rule FM-4: ETags are stored in quotes.
func TestQuoteETag(t *testing.T) {
	for s, want := range map[string]string{
		`e`: `"e"`, ``: `""`, `"e`: `"e"`, `e"`: `"e"`, `W/"e`: `W/"e"`, `"`: `""`, `W/"`: `W/""`,
		`"e"`: `"e"`, `W/"e"`: `W/"e"`, `""`: `""`,
	} {
		require.Equal(t, want, domain.QuoteETag(s), s)
	}
}

// TestObjectIsAccessible tests rule FM-85 of the specification FM-new. Unlike in the original
// system, a restored object of class Glacier is accessible.
func TestObjectIsAccessible(t *testing.T) {
	for _, tc := range []struct {
		class, archive string
		reason         domain.ObjectReason
		want           bool
	}{
		{class: "", want: true},
		{class: domain.ClassStandard, want: true},
		{class: "STANDARD_IA", want: true},
		{class: "GLACIER_IR", want: true},
		{class: "GLACIER_IR", archive: "DEEP_ARCHIVE_ACCESS", want: true},
		{class: domain.ClassStandard, archive: "ARCHIVE_ACCESS", want: true},
		{class: domain.ClassIntelligentTiering, want: true},
		{class: domain.ClassIntelligentTiering, archive: "ARCHIVE_ACCESS"},
		{class: domain.ClassIntelligentTiering, archive: "DEEP_ARCHIVE_ACCESS"},
		{class: domain.ClassGlacier},
		{class: domain.ClassGlacier, reason: domain.Restored, want: true},
		{class: domain.ClassDeepArchive},
		{class: domain.ClassDeepArchive, reason: domain.Restored, want: true},
		{class: domain.ClassDeepArchive, reason: domain.CrawlRestored, want: true},
		{class: domain.ClassDeepArchive, reason: domain.RestoreExpired},
		{class: domain.ClassAzureArchive},
		{class: "Hot", want: true},
	} {
		e := domain.ObjectEvent{Type: domain.ObjectCreated, ObjectFacts: domain.ObjectFacts{StorageClass: tc.class, ArchiveStatus: tc.archive, Reason: tc.reason}}
		require.Equal(t, tc.want, e.IsAccessible(), "%+v", tc)
		e.Type = domain.ObjectDeleted
		require.False(t, e.IsAccessible(), "a deleted object")
	}
}

func TestObjectEventIsChecked(t *testing.T) {
	e := domain.ObjectEvent{}
	requireInvalid(t, e.Check(), "object event: want Created or Deleted")
	e.Type = domain.ObjectCreated
	requireInvalid(t, e.Check(), "object event without sequencer: want the message that carried it")
	e.Carrier.Message = "m"
	require.NoError(t, e.Check())
	e = domain.ObjectEvent{Type: domain.ObjectDeleted, Sequencer: must(domain.ParseSequencer(domain.HexSequencer, "1"))}
	require.NoError(t, e.Check())
}
