package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/domain/replay"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/memory"
)

// A pushFixture consists of the subscriptions and deliveries of a server. No engine delivers
// messages.
type pushFixture struct {
	*testing.T
	cursors *memory.Cursors
	streams *memory.Streams
	answer  domain.Answer // result of each test call
	body    string
	now     time.Time
}

func (p *pushFixture) Receiver(context.Context, domain.CursorID, bool) (inspect.Receiver, error) {
	return inspect.Receiver{Policy: domain.DefaultPolicy()}, nil
}

func (p *pushFixture) Test(context.Context, *inspect.Receiver, *domain.Message) (domain.Answer, []byte) {
	return p.answer, []byte(p.body)
}

// withDeliveries configures a server with subscriptions and deliveries in memory.
func withDeliveries(t *testing.T) (*pushFixture, func(*api.Options, *hub.Options)) {
	t.Helper()
	p := &pushFixture{T: t, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return p.now }
	p.cursors, p.streams = memory.NewCursors(clock), memory.NewStreams(time.Hour, clock)
	definitions := memory.NewDefinitions()
	return p, func(o *api.Options, _ *hub.Options) {
		o.Subscriptions = subscribe.New(subscribe.Ports{Definitions: definitions, Streams: p.streams, Cursors: p.cursors, Dequeues: memory.New(memory.Options{})}, nil, subscribe.Options{Clock: clock})
		o.Deliveries = inspect.New(inspect.Ports{Definitions: definitions, Cursors: p.cursors, Streams: p.streams, Receivers: p, Caller: p},
			inspect.Options{Clock: clock, Random: func() string { return "random" }})
		o.Replays = replay.New(replay.Ports{Definitions: definitions, Cursors: p.cursors, Streams: p.streams, Shards: p.cursors}, replay.Options{})
		o.AdminToken = "a token of operators that is long"
	}
}

// publishMessages appends messages to a topic.
func (p *pushFixture) publishMessages(n int) {
	p.Helper()
	topic, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(p, err)
	messages := make([]domain.Message, n)
	for i := range messages {
		messages[i].Attributes = map[string]string{"id": "made", "type": "t", "source": "/s"}
	}
	_, err = p.streams.Append(p.Context(), topic, messages)
	require.NoError(p, err)
}

// deliver makes one delivery for each of answers, as a node does.
func (p *pushFixture) deliver(subscription string, answers ...domain.Answer) {
	p.Helper()
	id, err := domain.ParseSubscriptionID(subscription)
	require.NoError(p, err)
	clock := func() time.Time { return p.now }
	c, version, err := p.cursors.Load(p.Context(), id.Cursor(), domain.Owner{Incarnation: "i", Limit: 8, Policy: domain.DefaultPolicy()}, clock)
	require.NoError(p, err)
	for _, a := range answers {
		c.Take(c.Position(0), true)
		call, ok := c.Next(p.now)
		require.True(p, ok)
		c.Begin(call)
		a.Began, a.Took = p.now, 1500*time.Microsecond
		c.Settle(domain.Outcome{Entry: call.EntryID, Published: p.now, Answer: a})
	}
	_, err = p.cursors.Settle(p.Context(), id.Cursor(), version, c.Settlement())
	require.NoError(p, err)
}

const deliveries = "/v1/deliveries"

func TestDeliveries_AreListedShownAndExplained(t *testing.T) {
	p, with := withDeliveries(t)
	f := serve(t, with)
	f.do("PUT", subscriptions+"/"+id(7), `{"callback_url":"https://example.org/"}`).wants(201)
	list := deliveries + "?subscription=" + id(7)
	require.JSONEq(t, `{"deliveries":[]}`, f.do("GET", list, "").wants(200).body)
	p.publishMessages(3)
	p.deliver(id(7), domain.Answer{Status: 200}, domain.Answer{Status: 500, Error: "the receiver failed (500); look at its log"})

	first := decoded(t, f.do("GET", list+"&size=2", "").wants(200).body)
	found := first["deliveries"].([]any)
	require.Len(t, found, 2)
	require.Equal(t, "delivered", found[0].(map[string]any)["state"])
	require.EqualValues(t, 1.5, found[0].(map[string]any)["last_attempt"].(map[string]any)["duration_ms"])
	rest := decoded(t, f.do("GET", list+"&size=2&page="+first["next"].(string), "").wants(200).body)
	require.Len(t, rest["deliveries"], 1)
	require.NotContains(t, rest, "next")
	require.Len(t, decoded(t, f.do("GET", list+"&state=retrying", "").wants(200).body)["deliveries"], 1)

	one := found[1].(map[string]any)["id"].(string)
	require.Equal(t, id(7)+".0.1", one)
	shown := decoded(t, f.do("GET", deliveries+"/"+strings.ToUpper(one), "").wants(200).body)
	require.Equal(t, one, shown["id"])
	require.Equal(t, "retrying", shown["state"])
	require.Len(t, shown["history"], 1)
	require.Equal(t, map[string]any{"id": "made", "type": "t", "source": "/s"}, shown["event"])

	why := decoded(t, f.do("GET", deliveries+"/"+one+"/explain", "").wants(200).body)
	require.Equal(t, "backoff", why["cause"])
	require.EqualValues(t, 11, why["attempts_left"])
	require.Equal(t, shown, why["delivery"])
	require.Equal(t, shown["due"], why["next_attempt"])
	require.NotEmpty(t, why["sentences"])
	require.Equal(t, subscriptions+"/"+id(7)+"/test", why["actions"].([]any)[0].(map[string]any)["path"])
	f.do("GET", deliveries+"/"+id(7)+".0.2/explain", "").wants(200)
	f.logs.wait(t, `"delivery":"`+id(7)+`.0.2"`)
}

func TestDeliveries_AreListedWithTheRangesThatHaveExpired(t *testing.T) {
	p, with := withDeliveries(t)
	f := serve(t, with)
	f.do("PUT", subscriptions+"/"+id(7), `{"callback_url":"https://example.org/"}`).wants(201)
	cursor, err := domain.ParseSubscriptionID(id(7))
	require.NoError(t, err)
	c, version, err := p.cursors.Load(t.Context(), cursor.Cursor(), domain.Owner{Incarnation: "i", Limit: 8}, func() time.Time { return p.now })
	require.NoError(t, err)
	c.Skip(domain.Position{EntryID: domain.EntryID{Priority: 2, Number: 40}}, p.now)
	_, err = p.cursors.Settle(t.Context(), cursor.Cursor(), version, c.Settlement())
	require.NoError(t, err)
	require.JSONEq(t, `{"deliveries":[],"expired":[{"priority":2,"from":0,"to":40,"count":40,"at":"2030-01-01T12:00:00Z",
		"reason":"their retention had passed before the subscription came to them"}]}`,
		f.do("GET", deliveries+"?subscription="+id(7)+"&state=dead", "").wants(200).body)
	require.Equal(t, "expired", decoded(t, f.do("GET", deliveries+"/"+id(7)+".2.39", "").wants(200).body)["state"])
}

func TestDeliveries_AreOnlyForTheirOwnerAndOperators(t *testing.T) {
	p, with := withDeliveries(t)
	f := serve(t, with)
	f.do("PUT", subscriptions+"/"+id(7), `{"callback_url":"https://example.org/"}`).wants(201)
	p.publishMessages(1)
	for _, path := range []string{deliveries + "?subscription=" + id(7), deliveries + "/" + id(7) + ".0.0", deliveries + "/" + id(7) + ".0.0/explain"} {
		f.do("GET", path, "").wants(200)
		token := "Bearer a token of operators that is long"
		f.do("GET", path, "", "X-Actor-Id", "", "Authorization", token).wants(200)
		a := f.do("GET", path, "", "X-Actor-Id", "another", "Authorization", token)
		a.problem(404, "not-found")
		unknown := f.do("GET", strings.ReplaceAll(path, id(7), id(8)), "", "X-Actor-Id", "another")
		unknown.problem(404, "not-found")
		withoutIDs := func(a domainAnswer) string {
			d := decoded(t, a.body)
			delete(d, "instance")
			return strings.NewReplacer(id(7), "", id(8), "").Replace(d["detail"].(string))
		}
		require.Equal(t, withoutIDs(unknown), withoutIDs(a))
		f.do("GET", path, "", "X-Actor-Id", "").problem(401, "missing-actor")
		f.do("GET", path, "", "X-Actor-Id", "", "Authorization", "Bearer wrong").problem(401, "missing-token")
	}
}

func TestABadRequestForDeliveries_IsRefused(t *testing.T) {
	_, with := withDeliveries(t)
	f := serve(t, with)
	for _, path := range []string{
		deliveries, deliveries + "?subscription=x", deliveries + "?subscription=" + id(7) + "&size=0", deliveries + "?subscription=" + id(7) + "&size=101",
		deliveries + "?subscription=" + id(7) + "&state=filtered", deliveries + "?subscription=" + id(7) + "&page=x", deliveries + "?subscription=" + id(7) + "&from=1",
		deliveries + "/" + id(7), deliveries + "/" + id(7) + ".0.01", deliveries + "/" + id(7) + ".0.1?size=1", deliveries + "/x/explain",
	} {
		f.do("GET", path, "").problem(400, "invalid")
	}
	f.do("POST", deliveries, "").problem(405, "method-not-allowed")
	serve(t).do("GET", deliveries+"?subscription="+id(7), "").problem(503, "not-provisioned")
}

func TestTestCall_ReturnsTheResponseOfTheReceiver(t *testing.T) {
	p, with := withDeliveries(t)
	f := serve(t, with)
	path := subscriptions + "/" + id(7)
	f.do("PUT", path, `{"callback_url":"https://example.org/"}`).wants(201)
	p.answer, p.body = domain.Answer{Status: 200, Took: 20 * time.Millisecond}, "thanks"
	require.JSONEq(t, `{"success":true,"status":200,"duration_ms":20,"answer":"thanks","message_id":"test-random"}`, f.do("POST", path+"/test", "").wants(200).body)
	p.answer, p.body = domain.Answer{Error: "the host was not found; check its DNS records"}, strings.Repeat("\xff", 300)
	failed := decoded(t, f.do("POST", path+"/test", "").wants(200).body)
	require.Equal(t, false, failed["success"])
	require.Equal(t, p.answer.Error, failed["error"])
	f.do("POST", path+"/test", "", "X-Actor-Id", "another").problem(404, "not-found")
	f.do("POST", path+"/test?x=1", "").problem(400, "invalid")
	for range 3 {
		f.do("POST", path+"/test", "").wants(200)
	}
	a := f.do("POST", path+"/test", "")
	a.problem(429, "too-many-tests")
	require.Equal(t, "60", a.header.Get("Retry-After"))
	shown := decoded(t, f.do("GET", path, "").wants(200).body)
	require.EqualValues(t, 0, shown["delivery"].(map[string]any)["failures"])
}
