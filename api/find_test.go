package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A foundAnswer contains the members of a search response that the tests read.
type foundAnswer struct {
	Results []struct {
		Kind, State, Actor string
		Steps              []struct{ What, At, Text string }
		Waits              []struct{ Cause, Next string }
	}
	Looked struct {
		Found, Mailboxes int
		Kinds, Notes     []string
	}
	After string
}

func findURL(pairs ...string) string {
	q := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return "/v1/admin/find?" + q.Encode()
}

func (f *hubFixture) findAnswer(pairs ...string) foundAnswer {
	f.t.Helper()
	var a foundAnswer
	require.NoError(f.t, json.Unmarshal([]byte(f.do("GET", findURL(pairs...), "").wants(200).body), &a))
	return a
}

func TestFind_ShowsWhereAnEventAndItsBundleAre(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1), newEvent(2))
	a := f.findAnswer("id", id(1))
	require.Len(t, a.Results, 1)
	require.Equal(t, []string{"event", "waiting", actor}, []string{a.Results[0].Kind, a.Results[0].State, a.Results[0].Actor})
	require.Equal(t, "not-peeked", a.Results[0].Waits[0].Cause)
	require.Empty(t, a.After)

	f.do("GET", "/v1/peek?bundleId="+id(71), "").wants(200)
	f.do("POST", admin+"/skip", `{`+why+`,"bundleId":"`+id(71)+`"}`).wants(204)
	for _, pairs := range [][]string{{"id", id(71)}, {"id", id(71), "actor", actor}, {"id", id(71) + "_" + actor}, {"id", id(71), "kind", "bundle"}} {
		a = f.findAnswer(pairs...)
		require.Len(t, a.Results, 1)
		r := a.Results[0]
		require.Equal(t, []string{"bundle", "skipped"}, []string{r.Kind, r.State})
		require.Equal(t, "skipped", r.Steps[1].What)
		require.Contains(t, r.Steps[1].Text, "kim")
		require.NotEmpty(t, r.Steps[1].At)
	}
	r := f.findAnswer("id", id(2), "actor", actor, "origin", "TimeSeries").Results[0]
	require.Equal(t, []string{"event", "skipped"}, []string{r.Kind, r.State})
}

func TestFind_ListsWhereItSearchedForAnUnknownID(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	for _, unknown := range []string{id(9), id(9) + "_" + actor, id(9) + ".0.1", `<script>alert("1")</script>`, "\u202eevil", strings.Repeat("x", 64), "' OR 1=1"} {
		p := f.do("GET", findURL("id", unknown), "").problem(404, "not-found")
		require.NotContains(t, p.Detail, "\u202e")
		var looked struct{ Looked *struct{ Mailboxes int } }
		require.NoError(t, json.Unmarshal([]byte(f.do("GET", findURL("id", unknown), "").body), &looked))
		require.NotNil(t, looked.Looked, unknown)
	}
	require.NotContains(t, f.logs.String(), "\u202e")
	f.do("GET", findURL("id", id(1), "actor", "other"), "").problem(404, "not-found")
	f.do("GET", findURL("id", id(1), "origin", "Charges"), "").problem(404, "not-found")
	f.do("GET", findURL("id", id(1), "kind", "bundle"), "").problem(404, "not-found")
}

func TestFind_RefusesAMalformedQuery(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	for _, tc := range []struct{ query, problem string }{
		{"", "invalid"},
		{"id=", "invalid"},
		{"id=" + strings.Repeat("x", 257), "invalid"},
		{"id=a%0ab", "invalid"},
		{"id=%ff", "invalid"},
		{"id=" + id(1) + "&id=" + id(2), "invalid"},
		{"id=" + id(1) + "&kind=color", "invalid"},
		{"id=" + id(1) + "&kind=", "invalid"},
		{"id=" + id(1) + "&actor=a%20b", "invalid-actor"},
		{"id=" + id(1) + "&actor=", "invalid"},
		{"id=" + id(1) + "&origin=%3Cscript%3E", "invalid"},
		{"id=" + id(1) + "&after=x", "invalid"},
		{"id=" + id(1) + "&after=", "invalid"},
		{"id=" + id(1) + "&after=" + strings.Repeat("A", 20_000), "invalid"},
		{"id=" + id(1) + "&color=red", "invalid"},
		{"id=" + id(1) + "&topic=events", "invalid"},
		{"id=" + id(1) + "&kind=published", "invalid"},
		{"id=" + id(1) + "&source=/x&origin=Charges", "invalid"},
		{"id=" + id(1) + "&source=/x&topic=%3Cscript%3E", "invalid"},
	} {
		f.do("GET", "/v1/admin/find?"+tc.query, "").problem(400, tc.problem)
	}
}

func TestFind_ReturnsEachMailboxThatHasAnIDAndContinues(t *testing.T) {
	f := serve(t)
	const mailboxes = 45
	shared := repositorytest.NewEventID()
	for i := range mailboxes {
		to, err := domain.ParseActorID(fmt.Sprintf("actor-%02d", i))
		require.NoError(t, err)
		_, err = f.store.Save(t.Context(), to, repositorytest.Events(1, to, func(e *domain.Event) { e.ID = shared }))
		require.NoError(t, err)
	}
	seen := make(map[string]bool)
	a := f.findAnswer("id", shared.String())
	for answers := 1; ; answers++ {
		for _, r := range a.Results {
			require.False(t, seen[r.Actor])
			seen[r.Actor] = true
		}
		require.Len(t, seen, a.Looked.Found)
		if a.After == "" {
			require.Equal(t, 3, answers)
			break
		}
		f.do("GET", findURL("id", id(9), "after", a.After), "").problem(400, "invalid")
		a = f.findAnswer("id", shared.String(), "after", a.After)
	}
	require.Len(t, seen, mailboxes)
	require.Equal(t, mailboxes, a.Looked.Mailboxes)
}

func TestFind_ShowsTheSavesOfATrace(t *testing.T) {
	f := serve(t)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	span, err := domain.ParseTraceContext("00-"+trace+"-b7ad6b7169203331-01", "")
	require.NoError(t, err)
	to, err := domain.ParseActorID(actor)
	require.NoError(t, err)
	_, err = f.store.Save(domain.WithTraceContext(t.Context(), span), to, repositorytest.Events(3, to))
	require.NoError(t, err)
	for _, id := range []string{trace, "00-" + trace + "-b7ad6b7169203331-01"} {
		a := f.findAnswer("id", id)
		require.Len(t, a.Results, 1)
		require.Equal(t, []string{"save", "accepted", actor}, []string{a.Results[0].Kind, a.Results[0].State, a.Results[0].Actor})
	}
	f.do("GET", findURL("id", trace, "actor", "other"), "").problem(404, "not-found")
}
