package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// failPeek makes the store of f fail a Peek with err, and returns the response.
func failPeek(f *hubFixture, err error) domainAnswer {
	f.store.next = func(context.Context) error { return fmt.Errorf("read the gate: %w", err) }
	return f.do("GET", "/v1/peek", "")
}

// provoke contains, for each problem type, a function that sends a request that causes the problem.
var provoke = map[string]func(f *hubFixture) domainAnswer{
	"invalid": func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", array(newEvent(1, "weight", 0), newEvent(2, "origin", "Gas"), newEvent(3)))
	},
	"not-json":           func(f *hubFixture) domainAnswer { return f.do("POST", "/v1/data-available", array(newEvent(1))+"]") },
	"body-cut":           func(f *hubFixture) domainAnswer { return f.raw(cutRequest, true) },
	"body-too-slow":      func(f *hubFixture) domainAnswer { return f.raw(cutRequest, false) },
	"invalid-actor":      func(f *hubFixture) domainAnswer { return f.do("GET", "/v1/peek", "", "X-Actor-Id", "Jørgen") },
	"missing-actor":      func(f *hubFixture) domainAnswer { return f.do("GET", "/v1/peek", "", "X-Actor-Id", "") },
	"no-such-route":      func(f *hubFixture) domainAnswer { return f.do("GET", "/v2/peek", "") },
	"unknown-group":      func(f *hubFixture) domainAnswer { return f.do("GET", "/v1/peek/gas", "") },
	"not-found":          func(f *hubFixture) domainAnswer { return f.do("DELETE", "/v1/dequeue/"+id(1), "") },
	"method-not-allowed": func(f *hubFixture) domainAnswer { return f.do("PUT", "/v1/peek", "{}") },
	"unsupported-media-type": func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", "<x/>", "Content-Type", "text/xml")
	},
	"conflict": func(f *hubFixture) domainAnswer {
		f.post(202, newEvent(1))
		f.do("GET", "/v1/peek?bundleId="+id(71), "").wants(200)
		return f.do("GET", "/v1/peek?bundleId="+id(72), "")
	},
	"precondition-failed": func(f *hubFixture) domainAnswer {
		f.post(202, newEvent(1))
		return f.do("GET", "/v1/peek", "", "If-Match", `"another"`)
	},
	"range-not-satisfiable": func(f *hubFixture) domainAnswer {
		f.post(202, newEvent(1))
		return f.do("GET", "/v1/peek", "", "Range", "bytes=5000-")
	},
	"id-conflict": func(f *hubFixture) domainAnswer {
		return f.post(409, newEvent(1), newEvent(2), newEvent(1, "weight", 2))
	},
	"already-stored": func(f *hubFixture) domainAnswer {
		f.post(202, newEvent(1), newEvent(2))
		return f.post(409, newEvent(3), newEvent(1, "weight", 2), newEvent(2))
	},
	"body-too-large": func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", array(newEvent(1, "payload", strings.Repeat("x", 600))))
	},
	"too-many-events": func(f *hubFixture) domainAnswer {
		return f.do("POST", "/v1/data-available", "["+strings.Repeat("{},", 20)+"{}]")
	},
	"busy": func(f *hubFixture) domainAnswer {
		return failPeek(f, domain.Errorf(domain.Busy, "429 from %s", "secret"))
	},
	"uncertain": func(f *hubFixture) domainAnswer {
		return failPeek(f, domain.Errorf(domain.Uncertain, "408 from %s", "secret"))
	},
	"unavailable": func(f *hubFixture) domainAnswer {
		return failPeek(f, domain.Errorf(domain.Unavailable, "503 from %s", "secret"))
	},
	"damaged": func(f *hubFixture) domainAnswer {
		return failPeek(f, domain.Errorf(domain.Damaged, "hole in %s", "secret"))
	},
	"newer-format": func(f *hubFixture) domainAnswer {
		return failPeek(f, domain.Errorf(domain.NewerFormat, "format 2 in %s", "secret"))
	},
	"internal": func(f *hubFixture) domainAnswer { return failPeek(f, errors.New("secret")) },
	"deadline-exceeded": func(f *hubFixture) domainAnswer {
		f.store.next = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		return f.do("GET", "/v1/peek", "")
	},
	"missing-token": func(f *hubFixture) domainAnswer {
		return f.do("GET", "/v1/admin/queues/"+actor, "", "Authorization", "Bearer wrong")
	},
	"too-many-logins": func(f *hubFixture) domainAnswer {
		for range 10 {
			f.do("GET", "/v1/admin/queues/"+actor, "", "Authorization", "").problem(401, "missing-token")
		}
		return f.do("GET", "/v1/admin/queues/"+actor, "", "Authorization", "")
	},
	"too-many-requests": func(f *hubFixture) domainAnswer {
		f.do("GET", "/v1/peek", "").wants(204)
		return f.do("GET", "/v1/peek", "")
	},
	"admin-closed": func(f *hubFixture) domainAnswer { return f.do("GET", "/v1/admin/queues/"+actor, "") },
	"no-answer": func(f *hubFixture) domainAnswer {
		f.store.next = func(context.Context) error { return unansweredProblem(hub.NoAnswer, "") }
		return f.do("GET", "/v1/peek", "")
	},
	"domain-failed": func(f *hubFixture) domainAnswer {
		f.store.next = func(context.Context) error { return unansweredProblem("dataset-not-available", "secret") }
		return f.do("GET", "/v1/peek", "")
	},
	"content-gone": func(f *hubFixture) domainAnswer {
		f.store.next = func(context.Context) error {
			return domain.Errorf(domain.Unavailable, "%w", &hub.ContentGoneError{Cause: errors.New("secret")})
		}
		return f.do("GET", "/v1/peek", "")
	},
	"frozen": func(f *hubFixture) domainAnswer {
		f.post(202, newEvent(1))
		a := f.do("POST", "/v1/admin/queues/"+actor+"/freeze", `{"who":"kim","why":"wait"}`)
		a.wants(204)
		return f.do("GET", "/v1/peek", "")
	},
	"not-provisioned": func(f *hubFixture) domainAnswer { return f.do("GET", "/v1/subscriptions", "") },
	"too-many-subscriptions": func(f *hubFixture) domainAnswer {
		f = serve(f.t, withSubscriptions(f.t, subscribe.Options{}), func(o *api.Options, _ *hub.Options) {
			o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
		})
		for range domain.MaxSubscriptions {
			f.do("POST", "/v1/subscriptions", `{"callback_url":"https://example.org/"}`).wants(201)
		}
		return f.do("POST", "/v1/subscriptions", `{"callback_url":"https://example.org/"}`)
	},
	"too-many-tests": func(f *hubFixture) domainAnswer {
		_, with := withDeliveries(f.t)
		f = serve(f.t, with, func(o *api.Options, _ *hub.Options) {
			o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
		})
		f.do("PUT", "/v1/subscriptions/"+id(7), `{"callback_url":"https://example.org/"}`).wants(201)
		for range 5 {
			f.do("POST", "/v1/subscriptions/"+id(7)+"/test", "").wants(200)
		}
		return f.do("POST", "/v1/subscriptions/"+id(7)+"/test", "")
	},
	"missing-credentials": func(f *hubFixture) domainAnswer { return serveBroker(f).do("GET", "/broker/producers", "") },
	"wrong-credentials": func(f *hubFixture) domainAnswer {
		return serveBroker(f).do("GET", "/broker/producers", "", "X-Broker-Admin-Token", "wrong")
	},
	"unsupported-format": func(f *hubFixture) domainAnswer {
		_, _, with := withObjects()
		f = serve(f.t, with, func(o *api.Options, _ *hub.Options) {
			o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
		})
		return f.do("POST", inventories, `{"manifest":{"sourceBucket":"bucket","destinationBucket":"another","creationTimestamp":"1","fileFormat":"ORC","files":[{"key":"a"}]}}`)
	},
	"crawl-under-way": func(f *hubFixture) domainAnswer {
		random := uint64(0)
		f = serve(f.t, func(o *api.Options, _ *hub.Options) {
			o.Objects = ledger.New(ledger.Ports{Objects: memory.NewObjects(), Jobs: memory.NewJobs(), Source: memory.NewSource("bucket")}, ledger.Options{
				Clock: func() time.Time { return time.Unix(0, 0) }, Random: func() uint64 { random++; return random },
			})
			o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
		})
		f.do("POST", crawls, `{"bucket":"bucket"}`).wants(202)
		return f.do("POST", crawls, `{"bucket":"bucket"}`)
	},
	"bus-unavailable":  func(f *hubFixture) domainAnswer { return failResend(f, domain.Unavailable) },
	"resend-uncertain": func(f *hubFixture) domainAnswer { return failResend(f, domain.Uncertain) },
	"partition-full": func(f *hubFixture) domainAnswer {
		f, objects := serveObjectEvents(f.t, func(o *api.Options, _ *hub.Options) {
			o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
		})
		objects.errs["b"] = fmt.Errorf("%w: %w", repository.ErrPartitionFull, domain.Errorf(domain.Unavailable, "403 from %s", "secret"))
		return f.postObjectEvents(objectRecords(objectRecord("a"), objectRecord("b")))
	},
	"invalid-token": func(f *hubFixture) domainAnswer {
		f = serveTokens(f.t)
		return f.do("GET", "/v1/peek", "", "Authorization", "Bearer "+f.tokens.issuer.Token(identitytest.Claims{"aud": "another"}))
	},
	"missing-right": func(f *hubFixture) domainAnswer {
		f = serveTokens(f.t)
		return f.do("GET", "/v1/peek", "", "Authorization", "Bearer "+f.tokens.issuer.Role("operator"))
	},
	"issuer-unavailable": func(f *hubFixture) domainAnswer {
		f = serveTokens(f.t)
		f.tokens.issuer.Break(http.NotFound)
		return f.do("GET", "/v1/peek", "")
	},
	"not-ready": func(f *hubFixture) domainAnswer { return f.do("GET", "/readyz", "") },
}

// failResend starts a server whose bus fails. It requests to resend a dead letter, and returns the
// response.
func failResend(f *hubFixture, kind domain.Kind) domainAnswer {
	f = serve(f.t, withLetters(&letterBus{letters: 1, resendErr: domain.Errorf(kind, "dead letters of queue events: the bus cannot be reached")}), func(o *api.Options, _ *hub.Options) {
		o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
	})
	return f.do("POST", letters+"/events/1/resend", `{`+why+`}`)
}

// serveBroker starts a server with a broker. All requests get the same id.
func serveBroker(f *hubFixture) *hubFixture {
	return serve(f.t, withBroker(f.t), func(o *api.Options, _ *hub.Options) {
		o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
	})
}

// unansweredProblem returns the error of a Peek whose domain has not produced the content.
func unansweredProblem(reason, text string) error {
	b := domain.Bundle{Content: domain.Request, ContentFailure: domain.ContentFailure{Failures: 1, Reason: reason, Text: text}}
	b.ID, _ = domain.ParseBundleID(id(71))
	b.Cabinet.Origin = domain.Charges
	return domain.Errorf(domain.Unavailable, "%w", &hub.UnansweredError{Bundle: b})
}

// cutRequest declares a longer body than it contains.
const cutRequest = "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n[{\"id\":"

// The body of every problem type equals a file in testdata/problems, so that clients can rely on
// it.
func TestEveryProblemHasItsBody(t *testing.T) {
	statuses := api.ProblemStatuses()
	require.Equal(t, slices.Sorted(maps.Keys(statuses)), slices.Sorted(maps.Keys(provoke)))
	for name, request := range provoke {
		t.Run(name, func(t *testing.T) {
			f := serve(t, func(o *api.Options, _ *hub.Options) {
				o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
				o.Limits.RequestBody, o.Limits.Events = 700, 20
				o.Ready = func(context.Context) error {
					return fmt.Errorf("secret: %w", &api.NotReadyError{Checks: []api.FailedCheck{
						{Name: "store", Reason: "the store does not answer", Remedy: "see whether the account is available"},
						{Name: "disk", Reason: "no room", Remedy: "free space"},
					}})
				}
				if name == "too-many-requests" {
					o.Limits.Requests = 1
				}
				if name == "too-many-logins" || name == "too-many-requests" {
					o.Clock = func() time.Time { return time.Unix(0, 0) }
				}
				if name == "admin-closed" {
					o.AdminToken = ""
				}
				if name == "deadline-exceeded" || name == "body-too-slow" {
					o.Deadline = time.Second
				}
			})
			a := request(f)
			a.problem(statuses[name], name)
			require.NotContains(t, a.body, "secret", "what happens inside is not for clients")
			require.Equal(t, readGolden(t, filepath.Join("testdata", "problems", name+".json"), a.body), a.body)
			require.Equal(t, "YKAB2SP4DFYGV5GM6ILCPQCICH", a.header.Get("X-Request-Id"))
			pause := ""
			switch {
			case name == "domain-failed", name == "bus-unavailable":
				pause = "10"
			case name == "not-provisioned", name == "issuer-unavailable":
				pause = "30"
			case name == "frozen":
				pause = "30" // the pause is longer, because an operator has to thaw the mailbox
			case name == "too-many-logins", name == "too-many-tests", name == "resend-uncertain":
				pause = "60"
			case name == "newer-format":
				pause = "5"
			case name == "partition-full":
				pause = "300" // objects are not deleted earlier
			case a.status == 429 || a.status == 503:
				pause = "1"
			}
			require.Equal(t, pause, a.header.Get("Retry-After"))
			// The requests for these problems start another server, so f logs nothing, and wait would fail after a
			// minute.
			if !slices.Contains([]string{"too-many-subscriptions", "too-many-tests", "missing-credentials", "wrong-credentials", "crawl-under-way", "unsupported-format", "partition-full", "bus-unavailable", "resend-uncertain", "invalid-token", "missing-right", "issuer-unavailable"}, name) {
				f.logs.wait(t, `"problem":"`+name+`"`)
			}
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "problems"))
	require.NoError(t, err)
	require.Len(t, files, len(provoke), "testdata/problems must have one file for each problem")
}

func TestPathsAndMethodsThatDoNotExistAreProblems(t *testing.T) {
	f := serve(t)
	for _, tc := range []struct{ method, path, allow string }{
		{"GET", "/", ""},
		{"GET", "/v1", ""},
		{"GET", "/v1/peek/", ""},
		{"GET", "/v1/peek/timeseries/x", ""},
		{"BREW", "/nowhere", ""},
		{"GET", "/v1/data-available", "POST"},
		{"HEAD", "/v1/dequeue/" + id(1), "DELETE"},
		{"POST", "/v1/peek/timeseries", "GET, HEAD"},
		{"DELETE", "/v1/bundles/" + id(1), "GET, HEAD"},
		{"POST", "/API/Peek/", "GET, HEAD"},
		{"GET", "/api/dequeue", "DELETE"},
		{"GET", "/api", ""},
		{"GET", "/api/peek/charges", ""},
		{"GET", "/API/monitor/other", ""},
		{"GET", "/v1/dequeue/" + id(1), "DELETE"},
		{"DELETE", "/healthz", "GET, HEAD"},
		{"BREW", "/readyz", "GET, HEAD"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			a := f.do(tc.method, tc.path, "")
			status, typ := 404, "no-such-route"
			if tc.allow != "" {
				status, typ = 405, "method-not-allowed"
			}
			if a.wants(status); tc.method != "HEAD" {
				a.problem(status, typ)
			}
			require.Equal(t, tc.allow, a.header.Get("Allow"))
		})
	}
}

func TestProbes_AcceptHEAD(t *testing.T) {
	f := serve(t)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/openapi.yaml"} {
		a := f.do("HEAD", path, "").wants(200)
		require.Equal(t, "", a.body)
	}
}

func TestAnUncertainDequeueIsReportedAsSafeToRepeat(t *testing.T) {
	f := serve(t)
	f.store.acknowledge = func() error { return domain.Errorf(domain.Uncertain, "the reply was lost") }
	p := f.do("DELETE", "/v1/dequeue/"+id(1), "").problem(503, "uncertain")
	require.Contains(t, p.Detail, "Repeat the same request after the pause, which is safe")
}

func TestAPanicIsAProblemAndItsStackIsLogged(t *testing.T) {
	f := serve(t)
	f.store.next = func(context.Context) error { panic("a bug") }
	a := f.do("GET", "/v1/peek", "")
	a.problem(500, "internal")
	require.NotContains(t, a.body, "a bug")
	f.logs.wait(t, "panic: a bug")
	require.Contains(t, f.logs.String(), "problem_test.go")
	f.do("GET", "/healthz", "").wants(200)
}

func TestBody_IsCutByAPanic(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1, "weight", 200, "payload", strings.Repeat("x", 200_000)))
	f.store.open = func(context.Context, repository.Section) (io.ReadCloser, error) {
		return io.NopCloser(&panicking{left: 70_000}), nil
	}
	resp, err := f.client.Do(f.newRequest("GET", "/v1/peek", nil))
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	f.logs.wait(t, "panic: a bug in a reader")
}

// A panicking reader returns some bytes and then panics.
type panicking struct{ left int }

func (r *panicking) Read(p []byte) (int, error) {
	if r.left == 0 {
		panic("a bug in a reader")
	}
	n := min(len(p), r.left)
	r.left -= n
	return n, nil
}
