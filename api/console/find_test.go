package console_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
)

// A finder returns a fixed answer to each query.
type finder struct {
	answer find.Answer
	err    error
	query  find.Query
}

func (f *finder) Find(_ context.Context, q find.Query) (*find.Answer, error) {
	f.query = q
	if f.err != nil {
		return nil, f.err
	}
	return &f.answer, nil
}

func TestFind_ShowsWhatHappenedAndWhatItWaitsFor(t *testing.T) {
	f := &finder{answer: find.Answer{
		ID: "x", After: "token", Results: []find.Result{{
			Kind: find.Event, State: find.StateWaiting, Actor: parseActor(t, actor), Title: "Event <b>",
			Steps: []find.Step{{What: find.StepAccepted, At: time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC), Text: "It was accepted.", Details: []find.Detail{{Name: "number", Value: "7"}}}},
			Waits: []find.Wait{{Cause: find.CauseNotPeeked, Text: "The actor has not peeked.", Next: "Ask it why."}},
			Notes: []string{"It has no bundle."},
		}},
		Scope: find.Scope{Found: 1, Mailboxes: 12, Notes: []string{"A note."}, Damage: []find.Unread{{Recipient: "a", Reason: "damaged"}}},
	}}
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) { o.Find = f })
	require.Contains(t, b.get("/console/find").wants(http.StatusOK).text(), "Id Of an event")
	a := b.get("/console/find?id=+x+&actor=" + actor + "&kind=event&origin=TimeSeries").wants(http.StatusOK)
	require.Equal(t, "x", f.query.ID)
	require.Equal(t, find.Event, f.query.Kind)
	require.Contains(t, a.text(), "Event <b> event, waiting of the actor "+actor)
	require.Contains(t, a.text(), "not-peeked – The actor has not peeked. Ask it why.")
	require.Contains(t, a.text(), "2026-11-27T08:00:00Z accepted It was accepted. number: 7")
	require.Contains(t, a.text(), "Mailboxes searched 12")
	require.Contains(t, a.body, `href="/console/find?actor=5790001330552&amp;after=token&amp;id=+x+&amp;kind=event&amp;origin=TimeSeries"`)
	b.get("/console/find?id=e-1&source=/a").wants(http.StatusOK)
	require.NotEmpty(t, f.query.MessageID)
}

func TestFind_SaysWhatIsWrongAndWhatIsUnknown(t *testing.T) {
	f := &finder{}
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) { o.Find = f })
	require.Contains(t, b.get("/console/find?id=x").wants(http.StatusOK).text(), "Nothing with this id is stored")
	require.Contains(t, b.get("/console/find?id=x&actor=a+b").wants(http.StatusUnprocessableEntity).text(), "Actor id")
	require.Contains(t, b.get("/console/find?id=x&origin=a+b").wants(http.StatusUnprocessableEntity).text(), "Origin")
	f.err = domain.Errorf(domain.Invalid, "id: too long")
	require.Contains(t, b.get("/console/find?id=x").wants(http.StatusUnprocessableEntity).text(), "Id: too long.")
	f.err = domain.Errorf(domain.Unavailable, "away")
	b.get("/console/find?id=x").wants(http.StatusServiceUnavailable)
}
