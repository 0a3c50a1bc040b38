package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func TestPeekRepeatsTheOpenBundleUntilItIsDequeued(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1, "documentType", "B"), newEvent(2, "documentType", "A"), newEvent(3, "documentType", "B"))
	first := f.do("GET", "/v1/peek", "").wants(200)
	require.Equal(t, "B,A", first.header.Get("MessageType"))
	require.Equal(t, "application/json", first.header.Get("Content-Type"))
	bundle := first.header.Get("MessageId")

	f.post(202, newEvent(4))
	again := f.do("GET", "/v1/peek/timeseries", "").wants(200)
	require.Equal(t, first.body, again.body)
	require.Equal(t, bundle, again.header.Get("MessageId"))

	done := f.do("DELETE", "/v1/dequeue/"+strings.ToUpper(bundle), "").wants(200)
	require.Equal(t, "", done.body)
	next := f.do("GET", "/v1/peek", "").wants(200)
	require.NotEqual(t, bundle, next.header.Get("MessageId"))
	require.Contains(t, next.body, id(4))
}

func TestPeek_Returns204IfNoEventWaits(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1, "recipient", "other"))
	require.Equal(t, "", f.do("GET", "/v1/peek", "").wants(204).body)
	f.post(202, newEvent(2))
	require.Equal(t, "", f.do("GET", "/v1/peek/masterdata", "").wants(204).body)
}

func TestAGroupHasItsOwnOpenBundle(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1), newEvent(2, "origin", "Charges"), newEvent(3, "origin", "MarketRoles"))
	require.Contains(t, f.do("GET", "/v1/peek/masterdata", "").wants(200).body, id(2))
	require.Contains(t, f.do("GET", "/v1/peek/timeseries", "").wants(200).body, id(1))
	require.NotContains(t, f.do("GET", "/v1/peek/masterdata", "").wants(200).body, id(3))
}

func TestAnUnknownGroupNamesTheKnownOnes(t *testing.T) {
	f := serve(t)
	for _, group := range []string{"gas", "TimeSeries", "a%20b", strings.Repeat("x", 100)} {
		p := f.do("GET", "/v1/peek/"+group, "").problem(404, "unknown-group")
		require.Contains(t, p.Detail, "known are aggregations, masterdata, timeseries")
	}
	require.Contains(t, f.do("GET", "/v1/peek/a%20b", "").problem(404, "unknown-group").Detail, `"a b"`)
	f.do("GET", "/v1/peek/%74imeseries", "").wants(204)
}

func TestABundleGetsTheIDThatTheActorSuggests(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1), newEvent(2, "contentType", "other"))
	f.do("GET", "/v1/peek?bundleId="+id(71), "").wants(200)
	a := f.do("GET", "/v1/peek?format=JSON&version=2.1&bundleId="+id(71), "").wants(200)
	require.Equal(t, id(71), a.header.Get("MessageId"))

	t.Run("another bundle is open", func(t *testing.T) {
		p := f.do("GET", "/v1/peek?bundleId="+id(72), "").problem(409, "conflict")
		require.Contains(t, p.Detail, id(71))
	})
	t.Run("another format is open", func(t *testing.T) {
		p := f.do("GET", "/v1/peek?format=xml", "").problem(409, "conflict")
		require.Contains(t, p.Detail, "open as json")
	})
	t.Run("the id is used up", func(t *testing.T) {
		f.do("DELETE", "/v1/dequeue/"+id(71), "").wants(200)
		p := f.do("GET", "/v1/peek?bundleId="+id(71), "").problem(409, "conflict")
		require.Contains(t, p.Detail, "already used")
	})
}

func TestPeek_RefusesInvalidParameters(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	for _, tc := range []struct{ query, detail string }{
		{"bundleId=4711", `bundle id: want a UUID such as`},
		{"bundleId=", `bundle id: want a UUID`},
		{"bundleId=00000000-0000-0000-0000-000000000000", "the nil UUID names nothing"},
		{"format=csv", `format: want json or xml, got "csv"`},
		{"format=", "format: want json or xml"},
		{"version=", "version: want 1 to 32 characters"},
		{"version=1%200", `got "1 0"`},
		{"bundleid=" + id(1), `Unknown query parameter "bundleid"; known are bundleId, format, version, wait.`},
		{"version=1&format=json&version=1", "Query parameter version occurs 2 times; send it once."},
		{"%zz", "The query is malformed"},
		{"a;b", "The query is malformed"},
		{url.QueryEscape(strings.Repeat("x", 300)) + "=1", "…"},
	} {
		t.Run(tc.query[:min(len(tc.query), 40)], func(t *testing.T) {
			require.Contains(t, f.do("GET", "/v1/peek?"+tc.query, "").problem(400, "invalid").Detail, tc.detail)
		})
	}
}

func TestTheHeaderOfTheActorIsRequired(t *testing.T) {
	f := serve(t)
	for _, route := range []string{"GET /v1/peek", "GET /v1/peek/timeseries", "DELETE /v1/dequeue/" + id(1)} {
		method, path, _ := strings.Cut(route, " ")
		t.Run(route, func(t *testing.T) {
			a := f.do(method, path, "", "X-Actor-Id", "")
			require.Contains(t, a.problem(401, "missing-actor").Detail, "X-Actor-Id")
			require.Equal(t, "X-Actor-Id", a.header.Get("WWW-Authenticate"))
			p := f.do(method, path, "", "X-Actor-Id", actor, "X-Actor-Id", actor).problem(400, "invalid-actor")
			require.Contains(t, p.Detail, "occurs 2 times")
			p = f.do(method, path, "", "X-Actor-Id", "a,b").problem(400, "invalid-actor")
			require.Contains(t, p.Detail, `want only A-Z a-z 0-9 . _ -, got "a,b"`)
			f.do(method, path, "", "X-Actor-Id", strings.Repeat("a", 65)).problem(400, "invalid-actor")
		})
	}
}

func TestUnknownForeignAndDequeuedBundlesLookAlike(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1, "recipient", "other"), newEvent(2))
	f.do("GET", "/v1/peek?bundleId="+id(71), "", "X-Actor-Id", "other").wants(200)
	f.do("GET", "/v1/peek?bundleId="+id(72), "").wants(200)
	f.do("DELETE", "/v1/dequeue/"+id(72), "").wants(200)
	bodies := map[string]bool{}
	for _, n := range []int{70, 71, 72} {
		a := f.do("DELETE", "/v1/dequeue/"+id(n), "", "X-Request-Id", "same")
		a.problem(404, "not-found")
		bodies[strings.ReplaceAll(a.body, id(n), "ID")] = true
	}
	require.Len(t, bodies, 1, "the answers differ")
	f.do("DELETE", "/v1/dequeue/"+id(71), "", "X-Actor-Id", "other").wants(200)
}

func TestADequeueNeedsAUUIDAndNoQuery(t *testing.T) {
	f := serve(t)
	require.Contains(t, f.do("DELETE", "/v1/dequeue/4711", "").problem(400, "invalid").Detail, `want a UUID`)
	require.Contains(t, f.do("DELETE", "/v1/dequeue/"+id(1)+"?force=1", "").problem(400, "invalid").Detail, `"force"`)
}

func TestPeek_ReturnsAProblemIfTheContentCannotBeOpened(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1, "payload", 1))
	f.store.open = func(context.Context, repository.Section) (io.ReadCloser, error) {
		return nil, domain.Errorf(domain.Unavailable, "secret disk 7")
	}
	a := f.do("GET", "/v1/peek", "")
	a.problem(503, "unavailable")
	require.Equal(t, "", a.header.Get("MessageId"))
	require.NotContains(t, a.body, "secret")
	require.Contains(t, f.logs.String(), "secret disk 7")
	f.store.open = nil
	f.do("GET", "/v1/peek", "").wants(200)
}

func TestBody_IsCutIfAReadFails(t *testing.T) {
	f := serve(t)
	sound := savePayloadObjects(f, 20)
	sound.Store(10)
	resp, err := f.client.Do(f.newRequest("GET", "/v1/peek", nil))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the body must not look whole")
	f.logs.wait(t, `"status":"aborted"`)
	require.Contains(t, f.logs.String(), "the body broke off")
}

// savePayloadObjects saves n payloads, each in a separate object. The returned counter limits how
// many of these objects can be opened, at first none. A body opens objects concurrently, so a test
// must not depend on their order.
func savePayloadObjects(f *hubFixture, n int) *atomic.Int32 {
	for number := range n {
		f.post(202, newEvent(number+1, "weight", 100, "payload", fmt.Sprintf("%d%s", number, strings.Repeat("x", 50_000))))
	}
	var sound atomic.Int32
	f.store.open = func(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
		r, err := f.store.Store.Open(ctx, s)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		payload, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		var number int32
		if _, err := fmt.Sscanf(string(payload), `"%dx`, &number); err != nil {
			return nil, err
		}
		if number >= sound.Load() {
			return nil, errors.New("disk gone")
		}
		return io.NopCloser(bytes.NewReader(payload)), nil
	}
	return &sound
}

func TestTheHeaderMessageTypeStaysShort(t *testing.T) {
	f := serve(t)
	var events []testEvent
	for n := range 200 {
		events = append(events, newEvent(n+1, "documentType", fmt.Sprintf("Type%03d%s", n, strings.Repeat("x", 93))))
	}
	f.post(202, events...)
	types := strings.Split(f.do("GET", "/v1/peek", "").wants(200).header.Get("MessageType"), ",")
	require.Len(t, types, domain.MaxDocumentTypes)
}
