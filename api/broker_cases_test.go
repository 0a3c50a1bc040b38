package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// Acceptance cases of the broker that concern requests, each with its number. broker/CASES.md lists
// all cases.

type partyStore = repository.Parties // embedding Parties under its own name would hide its method Parties

// failingParties is a store of parties that fails with err, unless err is nil.
type failingParties struct {
	partyStore
	err   error
	reads int // number of reads of single parties
}

func (p *failingParties) Party(ctx context.Context, id domain.PartyID) (*repository.Party, error) {
	p.reads++
	if p.err != nil {
		return nil, p.err
	}
	return p.partyStore.Party(ctx, id)
}

// failingChannels is a store of streams that fails with err, unless err is nil.
type failingChannels struct {
	repository.Streams
	err error
}

func (s *failingChannels) Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Streams.Append(ctx, stream, messages)
}

func (s *failingChannels) End(ctx context.Context, stream domain.StreamName) (repository.StreamEnd, error) {
	if s.err != nil {
		return repository.StreamEnd{}, s.err
	}
	return s.Streams.End(ctx, stream)
}

var errDown = domain.Errorf(domain.Unavailable, "503 from secret")

// serveFailingStores starts a server whose broker has stores that fail when the test says so.
func serveFailingStores(t *testing.T, change ...func(*api.Options, *hub.Options)) (f *hubFixture, parties *failingParties, streams *failingChannels, now *time.Time) {
	now = new(time.Now())
	with := withBroker(t, func(p *broker.Ports, o *broker.Options) {
		parties, streams = &failingParties{partyStore: p.Parties}, &failingChannels{Streams: p.Streams}
		p.Parties, p.Streams = parties, streams
		o.Clock = func() time.Time { return *now }
	})
	return serve(t, append(change, with)...), parties, streams, now
}

func TestCase01_PutCreatesAndAnswersWithTheParty(t *testing.T) {
	f := serve(t, withBroker(t))
	for path, fields := range map[string][]string{
		"/producer/maker":               {"token", "x", "name", "The maker"},
		"/channel/prices":               {"token", "x", "name", "Prices"},
		"/channel/prices/consumer/shop": {"token", "x", "name", "A shop", "callbackUrl", "https://shop.example/hook"},
	} {
		if strings.Contains(path, "/consumer/") {
			f.put("/channel/prices", "token", "x")
		}
		f.put("/channel/prices", "token", "x", "name", "Prices")
		a := f.put(path, fields...)
		require.Contains(t, []int{200, 201}, a.status)
		if a.status == 201 {
			require.Equal(t, "/broker"+path, a.header.Get("Location"))
		}
		one := decoded(t, a.body)
		require.Equal(t, idOf(path), one["id"])
		require.Equal(t, fields[3], one["name"])
		require.NotContains(t, one, "token")
		if strings.Contains(path, "/consumer/") {
			require.Equal(t, "prices", one["channel"])
			require.Equal(t, "https://shop.example/hook", one["callbackUrl"])
		}
	}
}

func TestCase02_ANameIsTheIDUnlessItIsGiven(t *testing.T) {
	f := serve(t, withBroker(t))
	require.Equal(t, "maker", decoded(t, f.put("/producer/maker", "token", "x").wants(201).body)["name"])
	// A request without a token is invalid. The hub does not generate tokens, because it never
	// shows them.
	require.Equal(t, []string{"/token"}, f.put("/producer/other").problem(400, "invalid").pointers())
}

func TestCase03_PutWithTheTimeOfTheLastChangeUpdates(t *testing.T) {
	f, _, _, now := serveFailingStores(t)
	created := f.put("/producer/maker", "token", "x").wants(201)
	*now = now.Add(time.Minute)
	path := "/broker/producer/maker"
	as := append([]string{"Content-Type", formType, "If-Unmodified-Since", created.header.Get("Last-Modified")}, asOperator...)
	updated := f.do("PUT", path, "name=new", as...).wants(200)
	require.NotEqual(t, created.header.Get("Last-Modified"), updated.header.Get("Last-Modified"))
	require.NotEqual(t, created.header.Get("ETag"), updated.header.Get("ETag"))
	f.do("PUT", path, "name=newer", append([]string{"Content-Type", formType, "If-Match", updated.header.Get("ETag")}, asOperator...)...).wants(200)
	// The hub compares times, whatever their format.
	shown := f.do("GET", path, "", asOperator...)
	changed, err := http.ParseTime(shown.header.Get("Last-Modified"))
	require.NoError(t, err)
	as[3] = changed.UTC().Format("Monday, 02-Jan-06 15:04:05 GMT")
	f.do("PUT", path, "name=newest", as...).wants(200)
}

func TestCase05_PutForAnotherStateIsRefused(t *testing.T) {
	f, _, _, now := serveFailingStores(t)
	created := f.put("/producer/maker", "token", "x").wants(201)
	*now = now.Add(time.Minute)
	f.put("/producer/maker", "name", "new").wants(200)
	for _, header := range [][]string{
		{"If-Unmodified-Since", created.header.Get("Last-Modified")},
		{"If-Match", created.header.Get("ETag")},
		{"If-Match", `"made by hand"`},
	} {
		a := f.do("PUT", "/broker/producer/maker", "name=newer", append(append([]string{"Content-Type", formType}, header...), asOperator...)...)
		require.Contains(t, a.problem(412, "precondition-failed").Detail, header[0])
	}
	f.do("PUT", "/broker/producer/other", "token=x", append([]string{"Content-Type", formType, "If-Match", "*"}, asOperator...)...).problem(412, "precondition-failed")
	require.Equal(t, "new", f.show("/broker/producer/maker", asOperator)["name"])
}

func TestCase06_PutInAnotherMediaTypeIsRefused(t *testing.T) {
	f := serve(t, withBroker(t))
	for _, media := range []string{"application/json", "text/plain", "multipart/form-data", ""} {
		f.do("PUT", "/broker/producer/maker", "token=x", append([]string{"Content-Type", media}, asOperator...)...).problem(415, "unsupported-media-type")
	}
	f.do("PUT", "/broker/producer/maker", "token=x", append([]string{"Content-Type", formType + "; charset=UTF-8"}, asOperator...)...).wants(201)
}

func TestCase07_AFailingStoreIsA503AndStoresNothing(t *testing.T) {
	f, parties, _, _ := serveFailingStores(t)
	parties.err = errDown
	a := f.put("/producer/maker", "token", "x")
	a.problem(503, "unavailable")
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.NotContains(t, a.body, "secret")
	parties.err = nil
	f.do("GET", "/broker/producer/maker", "", asOperator...).problem(404, "not-found")
}

func TestCase08_GetShowsWhenThePartyChanged(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	for _, path := range []string{"/broker/producer/maker", "/broker/channel/prices", "/broker/channel/prices/consumer/shop"} {
		a := f.do("GET", path, "", asOperator...).wants(200)
		changed, err := time.Parse(time.RFC3339, decoded(t, a.body)["changed"].(string))
		require.NoError(t, err)
		require.Equal(t, changed.Format(http.TimeFormat), a.header.Get("Last-Modified"))
		require.NotEmpty(t, a.header.Get("ETag"))
		f.do("GET", path+"x", "", asOperator...).problem(404, "not-found")
	}
}

func TestCase09_TokensAreCachedAndForgottenWhenTheyChange(t *testing.T) {
	f, parties, _, now := serveFailingStores(t)
	f.putShop()
	f.broadcast("1")
	before := parties.reads
	f.broadcast("2")
	require.Equal(t, before, parties.reads, "the second broadcast reads no party")
	f.put("/channel/prices", "token", "another").wants(200)
	f.do("POST", "/broker/channel/prices/broadcast", "3", asProducer...).problem(403, "wrong-credentials")
	f.put("/channel/prices", "token", "of-prices").wants(200)
	// The failure of a read is not cached.
	*now = now.Add(time.Minute)
	parties.err = errDown
	f.do("POST", "/broker/channel/prices/broadcast", "3", asProducer...).problem(503, "unavailable")
	parties.err = nil
	f.broadcast("3")
}

func TestCase10_AConsumerNeedsAChannelAndAnAbsoluteCallback(t *testing.T) {
	f := serve(t, withBroker(t))
	f.put("/channel/none/consumer/shop", "token", "x", "callbackUrl", "https://shop.example/").problem(404, "not-found")
	f.put("/channel/prices", "token", "x").wants(201)
	for _, callback := range []string{"", "/hook", "shop.example", "://", "ftp://shop.example/", "https://", "https://shop.example/#part"} {
		require.Equal(t, []string{"/callbackUrl"}, f.put("/channel/prices/consumer/shop", "token", "x", "callbackUrl", callback).problem(400, "invalid").pointers(), callback)
	}
	f.put("/channel/prices/consumer/shop", "token", "x", "callbackUrl", "https://shop.example/", "type", "other").problem(400, "invalid")
	for _, kind := range []string{"", "push"} {
		require.Contains(t, []int{200, 201}, f.put("/channel/prices/consumer/shop", "token", "x", "callbackUrl", "https://shop.example/", "type", kind).status)
	}
}

func TestCase12_PagesOfAListHaveEveryPartyOnce(t *testing.T) {
	f := serve(t, withBroker(t))
	f.put("/channel/prices", "token", "of-prices").wants(201)
	for _, list := range []struct{ member, path, one string }{
		{"producers", "/broker/producers", "/producer/%s"},
		{"channels", "/broker/channels", "/channel/%s"},
		{"consumers", "/broker/channel/prices/consumers", "/channel/prices/consumer/%s"},
	} {
		var want []string
		for i := range 12 {
			name := fmt.Sprintf("n-%02d", i)
			fields := []string{"token", "x"}
			if list.member == "consumers" {
				fields = append(fields, "callbackUrl", "https://shop.example/")
			}
			f.put(fmt.Sprintf(list.one, name), fields...).wants(201)
			want = append(want, name)
		}
		if list.member == "channels" {
			want = append(want, "prices")
		}
		for _, size := range []int{1, 5, 12, 13, 100} {
			var got []string
			for path := fmt.Sprintf("%s?size=%d", list.path, size); path != ""; {
				page := f.show(path, asOperator)
				require.LessOrEqual(t, len(page[list.member].([]any)), size)
				got = append(got, idsOf(page[list.member])...)
				path, _ = page["next"].(string)
			}
			require.Equal(t, want, got, "%s by %d", list.member, size)
		}
		require.Equal(t, []string{"n-03", "n-04"}, idsOf(f.show(list.path+"?size=2&first=n-03", asOperator)[list.member]))
	}
	f.put("/channel/empty", "token", "x").wants(201)
	require.Empty(t, f.show("/broker/channel/empty/consumers", asOperator)["consumers"])
}

func TestCase13_ABroadcastNeedsItsCredentialsAndItsStore(t *testing.T) {
	f, _, streams, _ := serveFailingStores(t)
	f.putShop()
	with := func(change ...string) domainAnswer {
		headers := append([]string{}, asProducer...)
		for i := 0; i < len(headers); i += 2 {
			if headers[i] == change[0] {
				headers[i+1] = change[1]
			}
		}
		return f.do("POST", "/broker/channel/prices/broadcast", "x", append([]string{"Content-Type", "text/plain"}, headers...)...)
	}
	for _, header := range []string{"X-Broker-Channel-Token", "X-Broker-Producer-ID", "X-Broker-Producer-Token"} {
		with(header, "").problem(401, "missing-credentials")
		with(header, "wrong").problem(403, "wrong-credentials")
	}
	with("X-Broker-Producer-ID", "not a name").problem(403, "wrong-credentials")
	f.do("POST", "/broker/channel/none/broadcast", "x", asProducer...).problem(403, "wrong-credentials")
	for kind, problem := range map[domain.Kind]string{domain.Unavailable: "unavailable", domain.Busy: "busy", domain.Uncertain: "uncertain"} {
		streams.err = domain.Errorf(kind, "the store is down")
		a := with("", "")
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.NotEqual(t, 201, a.status)
		require.Contains(t, a.body, "urn:messagehub:problem:"+problem)
	}
}

func TestCase14_ABroadcastIsStoredAndAnsweredWithItsPath(t *testing.T) {
	var published []repository.Appended
	f := serve(t, withBroker(t, func(_ *broker.Ports, o *broker.Options) {
		o.Published = func(_ domain.StreamName, _ []domain.Message, appended []repository.Appended) {
			published = append(published, appended...)
		}
	}))
	f.putShop()
	a := f.do("POST", "/broker/channel/prices/broadcast", "x", append([]string{"X-Request-Id", "r-17"}, asProducer...)...).wants(201)
	require.Equal(t, "r-17", a.header.Get("X-Request-Id"))
	f.logs.wait(t, `"request_id":"r-17"`)
	require.Len(t, published, 1)
	require.Equal(t, idOf(a.header.Get("Location")), published[0].Position.MessageID())
	require.Equal(t, "x", f.show(a.header.Get("Location"), asReader)["payload"])
}

func TestCase15_TheContentTypeIsOctetStreamUnlessItIsStated(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	require.Equal(t, "application/octet-stream", f.show(f.broadcast("x"), asReader)["contentType"])
	require.Equal(t, "text/csv; charset=latin1", f.show(f.broadcast("x", "Content-Type", "text/csv; charset=latin1"), asReader)["contentType"])
}

func TestCase16_ThePriorityIs0UnlessItIsStatedAndIsCutToTheRange(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	require.EqualValues(t, 0, f.show(f.broadcast("x"), asReader)["priority"])
	for text, want := range map[string]int{
		"0": 0, "7": 7, "9": 9, "10": 9, "99999999999999999999": 9, "-1": 0, "-99999999999999999999": 0, "+3": 3, "007": 7,
	} {
		require.EqualValues(t, want, f.show(f.broadcast("x", "X-Broker-Message-Priority", text), asReader)["priority"], text)
	}
}

func TestCase17_AMessageIsFoundByTheIDOfItsProducer(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	path := f.broadcast("x", "X-Broker-Message-ID", "order-17")
	ours := f.show(path, asReader)
	require.Equal(t, "order-17", ours["producerMessageId"])
	require.Equal(t, ours, f.show("/broker/channel/prices/message/order-17", asReader))
}

func TestCase18_TheSameIDIsAnsweredAsTheFirstTimeOrRefused(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	path := f.broadcast("x", "X-Broker-Message-ID", "order-17")
	require.Equal(t, path, f.broadcast("x", "X-Broker-Message-ID", "order-17"))
	f.do("POST", "/broker/channel/prices/broadcast", "y", append([]string{"Content-Type", "", "X-Broker-Message-ID", "order-17"}, asProducer...)...).problem(409, "id-conflict")
	require.Len(t, f.show("/broker/channel/prices/messages", asReader)["messages"], 1)
	f.put("/channel/other", "token", "of-prices").wants(201)
	f.do("POST", "/broker/channel/other/broadcast", "y", append([]string{"Content-Type", "", "X-Broker-Message-ID", "order-17"}, asProducer...)...).wants(201)
}

func TestCase19_OnlyListedHeadersAreDelivered(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	path := f.broadcast("x", "X-Broker-Metadata-Headers", "X-Trace, x-tenant ,X-Missing", "X-Trace", "17", "X-Tenant", "a", "X-Other", "no")
	require.Equal(t, map[string]any{"X-Trace": "17", "X-Tenant": "a"}, f.show(path, asReader)["metadata"])
}

func TestCase29_AMessageIsShownWithAllItsJobs(t *testing.T) {
	f, _, streams, _ := serveFailingStores(t)
	f.putShop()
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("c-%02d", i))
		f.put("/channel/prices/consumer/"+want[i], "token", "x", "callbackUrl", "https://shop.example/").wants(201)
	}
	path := f.broadcast("x")
	f.put("/channel/prices/consumer/zz-late", "token", "x", "callbackUrl", "https://shop.example/").wants(201)
	shown := f.show(path, asReader)
	require.Equal(t, append(want, "shop"), idsOf(shown["jobs"]))
	for _, job := range shown["jobs"].([]any) {
		require.Equal(t, "In-flight", job.(map[string]any)["status"])
		require.Equal(t, path+"/job/"+job.(map[string]any)["id"].(string)+"/re-trigger", job.(map[string]any)["retriggerUrl"])
	}
	require.Equal(t, "Acknowledged", shown["status"])
	f.do("GET", "/broker/channel/prices/message/none", "", asReader...).problem(404, "not-found")
	streams.err = errDown
	f.do("GET", "/broker/channel/prices/messages", "", asReader...).problem(503, "unavailable")
}

func TestCase30_MessagesAreListedByPagesAndByTheTimeOfTheirStatus(t *testing.T) {
	f := serve(t, withBroker(t))
	f.put("/producer/maker", "token", "of-maker").wants(201)
	f.put("/channel/prices", "token", "of-prices").wants(201)
	var want []string
	for _, priority := range []string{"0", "0", "3", "3", "3"} {
		want = append(want, idOf(f.broadcast("x", "X-Broker-Message-Priority", priority)))
	}
	for _, size := range []int{1, 2, 5, 100} {
		var got []string
		for path := fmt.Sprintf("/broker/channel/prices/messages?size=%d", size); path != ""; {
			page := f.show(path, asReader)
			got = append(got, idsOf(page["messages"])...)
			path, _ = page["next"].(string)
		}
		require.Equal(t, want, got)
	}
	one := f.show("/broker/channel/prices/messages?first="+want[3]+"&size=1", asReader)["messages"].([]any)[0].(map[string]any)
	require.Equal(t, want[3], one["id"])
	require.Equal(t, "Out-for-delivery", one["status"], "a channel without consumers")
	require.NotContains(t, one, "payload")
	require.NotContains(t, one, "jobs")
	hour := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) } // in some time zones, the formatted time contains a plus sign
	require.Len(t, f.show("/broker/channel/prices/messages?statusChangedSince="+hour(-time.Hour), asReader)["messages"], 5)
	require.Empty(t, f.show("/broker/channel/prices/messages?statusChangedSince="+hour(time.Hour), asReader)["messages"])
}
