package api_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A wantedRefusal is a case in which POST /v1/data-available refuses a request with the valid
// events 1 and 2.
type wantedRefusal struct {
	problem string
	status  int
	request func(f *hubFixture) domainAnswer
	counts  *countedEvents // members accepted and duplicates of the problem; nil if it must contain neither
	named   []string       // JSON pointers in the problem, if some events are stored
	unknown bool           // true if only repeating the request reveals whether an event was stored
	tokens  bool           // whether the server accepts tokens
}

type countedEvents struct{ accepted, duplicates int }

// failingFor returns a hook that makes every Save for the recipient "other" fail.
func failingFor(kind domain.Kind) func(context.Context, domain.ActorID) error {
	return func(_ context.Context, recipient domain.ActorID) error {
		if recipient.String() == "other" {
			return domain.Errorf(kind, "content type: other has events of too many kinds")
		}
		return nil
	}
}

// toBoth sends the events 1 and 2, and two events for the recipient "other", whose Saves fail.
func toBoth(kind domain.Kind, more ...testEvent) func(f *hubFixture) domainAnswer {
	return func(f *hubFixture) domainAnswer {
		f.store.save = failingFor(kind)
		events := append([]testEvent{newEvent(3, "recipient", "other"), newEvent(1), newEvent(4, "recipient", "other"), newEvent(2)}, more...)
		a := f.do("POST", "/v1/data-available", array(events...))
		f.store.save = nil
		return a
	}
}

// postsTwo sends the events 1 and 2, and further events.
func postsTwo(more ...testEvent) func(f *hubFixture) domainAnswer {
	return func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", array(append([]testEvent{newEvent(1), newEvent(2)}, more...)...))
	}
}

// rawPost returns the text of a request whose header Content-Length is length, even if body has a
// different length.
func rawPost(length int, body string) string {
	return "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n" + body
}

var refusals = map[string]wantedRefusal{
	"an event at fault":                        {problem: "invalid", status: 400, request: postsTwo(newEvent(3, "weight", 0))},
	"an unknown origin":                        {problem: "invalid", status: 400, request: postsTwo(newEvent(3, "origin", "Gas"))},
	"a payload that parsers do not read alike": {problem: "invalid", status: 400, request: postsTwo(newEvent(3, "payload", json.RawMessage(`{"a":1,"a":2}`)))},
	"a query parameter": {problem: "invalid", status: 400, request: func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available?x=1", array(newEvent(1), newEvent(2)))
	}},
	"a body that is not JSON": {problem: "not-json", status: 400, request: func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", array(newEvent(1), newEvent(2))+"]")
	}},
	"a body that is cut": {problem: "body-cut", status: 400, request: func(f *hubFixture) domainAnswer {
		return f.raw(rawPost(3_000, array(newEvent(1), newEvent(2))[:300]), true)
	}},
	"a body in malformed chunks": {problem: "invalid", status: 400, request: func(f *hubFixture) domainAnswer {
		return f.raw("POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"2\r\n[{\r\nzz\r\n", false)
	}},
	"a body that is late": {problem: "body-too-slow", status: 408, request: func(f *hubFixture) domainAnswer {
		return f.raw(rawPost(3_000, array(newEvent(1), newEvent(2))[:300]), false)
	}},
	"one id for two contents": {problem: "id-conflict", status: 409, request: postsTwo(newEvent(1, "weight", 2))},
	"a large body":            {problem: "body-too-large", status: 413, request: postsTwo(newEvent(3, "weight", 9, "payload", strings.Repeat("x", 5_000)))},
	"many events":             {problem: "too-many-events", status: 413, request: postsTwo(newEvent(3), newEvent(4), newEvent(5), newEvent(6), newEvent(7))},
	"another media type": {problem: "unsupported-media-type", status: 415, request: func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", array(newEvent(1), newEvent(2)), "Content-Type", "text/json")
	}},

	"a token for another service": {problem: "invalid-token", status: 401, tokens: true, request: func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", array(newEvent(1), newEvent(2)), "Authorization", "Bearer "+f.tokens.issuer.Token(identitytest.Claims{"aud": "another"}))
	}},
	"an origin of another domain": {problem: "missing-right", status: 403, tokens: true, request: postsTwo(newEvent(3, "origin", "Charges"))},
	"an issuer that is out of reach": {problem: "issuer-unavailable", status: 503, unknown: true, tokens: true, request: func(f *hubFixture) domainAnswer {
		f.tokens.issuer.Break(http.NotFound)
		a := postsTwo()(f)
		f.tokens.issuer.Break(nil)
		f.tokens.advance(time.Minute)
		return a
	}},

	"an id stored with other content": {
		problem: "already-stored", status: 409, counts: &countedEvents{1, 1}, named: []string{"/2/id"},
		request: func(f *hubFixture) domainAnswer {
			f.post(202, newEvent(2), newEvent(9))
			return postsTwo(newEvent(9, "weight", 2))(f)
		},
	},
	"a recipient at a limit": {
		problem: "invalid", status: 400, counts: &countedEvents{2, 0}, named: []string{"/0", "/2"}, request: toBoth(domain.Invalid),
	},
	"a recipient at a limit, and an id stored with other content": {
		problem: "invalid", status: 400, counts: &countedEvents{1, 1}, named: []string{"/0", "/2", "/4/id"},
		request: func(f *hubFixture) domainAnswer {
			f.post(202, newEvent(2), newEvent(9))
			return toBoth(domain.Invalid, newEvent(9, "weight", 2))(f)
		},
	},
	"a damaged mailbox": {
		problem: "damaged", status: 500, counts: &countedEvents{2, 0}, named: []string{"/0", "/2"}, request: toBoth(domain.Damaged),
	},

	"a client that sends too much": {problem: "too-many-requests", status: 429, request: func(f *hubFixture) domainAnswer {
		const path, client = "/v1/data-available", "another-client"
		f.do("POST", path, array(newEvent(3), newEvent(4), newEvent(5), newEvent(6), newEvent(7), newEvent(8)), "X-Actor-Id", client).wants(202)
		return f.do("POST", path, array(newEvent(1), newEvent(2)), "X-Actor-Id", client)
	}},
	"a busy store":                 {problem: "busy", status: 429, unknown: true, request: toBoth(domain.Busy)},
	"a store with a bug":           {problem: "internal", status: 500, unknown: true, request: toBoth(domain.Unknown)},
	"an unknown outcome":           {problem: "uncertain", status: 503, unknown: true, request: toBoth(domain.Uncertain)},
	"a store that does not answer": {problem: "unavailable", status: 503, unknown: true, request: toBoth(domain.Unavailable)},
	"a mailbox of a newer version": {problem: "newer-format", status: 503, unknown: true, request: toBoth(domain.NewerFormat)},
	"a store that is slow": {
		problem: "deadline-exceeded", status: 503, unknown: true,
		request: func(f *hubFixture) domainAnswer {
			f.store.save = func(ctx context.Context, _ domain.ActorID) error { <-ctx.Done(); return ctx.Err() }
			a := postsTwo()(f)
			f.store.save = nil
			return a
		},
	},
}

// A refused request has stored nothing, unless its problem contains the member accepted. In that
// case, it has stored and counted all events except those that errors lists. openapi.yaml states this
// rule.
func TestRefusal_StoresNothingOrCountsWhatItStored(t *testing.T) {
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := func(o *api.Options, _ *hub.Options) {
				o.Limits.RequestBody, o.Limits.Events = 4_000, 6
				if r.problem == "too-many-requests" {
					o.Limits.EventsPerSecond = 1
				}
				if r.problem == "body-too-slow" || r.problem == "deadline-exceeded" {
					o.Deadline = time.Second
				}
			}
			var f *hubFixture
			if r.tokens {
				f = serveTokens(t, limits)
			} else {
				f = serve(t, limits)
			}
			a := r.request(f)
			p := a.problem(r.status, r.problem)
			var counts struct{ Accepted, Duplicates *int }
			require.NoError(t, json.Unmarshal([]byte(a.body), &counts))
			sound := []testEvent{newEvent(1), newEvent(2)}
			switch {
			case r.unknown:
				require.Nil(t, counts.Accepted)
				require.Nil(t, counts.Duplicates)
				f.post(202, sound...)
			case r.counts == nil:
				require.Nil(t, counts.Accepted)
				require.Nil(t, counts.Duplicates)
				require.JSONEq(t, `{"accepted":2,"duplicates":0}`, f.post(202, sound...).body, "nothing was stored")
			default:
				require.Equal(t, r.counts.accepted, *counts.Accepted)
				require.Equal(t, r.counts.duplicates, *counts.Duplicates)
				require.Equal(t, r.named, p.pointers())
				require.Contains(t, p.Detail, "The others are stored, and accepted and duplicates count them.")
				require.JSONEq(t, `{"accepted":0,"duplicates":2}`, f.post(202, sound...).body, "the others are stored")
				if r.named[0] == "/0" {
					other := []testEvent{newEvent(3, "recipient", "other"), newEvent(4, "recipient", "other")}
					require.JSONEq(t, `{"accepted":2,"duplicates":0}`, f.post(202, other...).body, "those that are named are not")
				}
			}
		})
	}
}

// The table of wanted refusals contains all problems that openapi.yaml lists for POST
// /v1/data-available, except those that only a Peek can cause.
func TestRefusals_CoverAllProblemsOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	var doc struct {
		Paths map[string]struct {
			Post struct {
				Responses map[string]struct {
					Ref string `yaml:"$ref"`
				}
			}
		}
		Components struct {
			Responses map[string]struct {
				Content map[string]struct {
					Schema struct {
						Properties struct{ Type struct{ Enum []string } }
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &doc))
	documented := map[string]bool{}
	for status, response := range doc.Paths["/v1/data-available"].Post.Responses {
		for _, content := range doc.Components.Responses[path.Base(response.Ref)].Content {
			for _, typ := range content.Schema.Properties.Type.Enum {
				if name := strings.TrimPrefix(typ, "urn:messagehub:problem:"); !slices.Contains([]string{"no-answer", "domain-failed", "content-gone", "frozen"}, name) {
					documented[status+" "+name] = true
				}
			}
		}
	}
	tested := map[string]bool{}
	for _, r := range refusals {
		tested[strconv.Itoa(r.status)+" "+r.problem] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(tested)))
}
