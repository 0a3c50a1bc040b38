package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/survey"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A hubFixture is a server on a loopback port with a store in memory, and a client that validates
// every request and response against openapi.yaml.
type hubFixture struct {
	t      *testing.T
	url    string
	store  *ports
	hub    *hub.Hub
	server *api.Server
	client *http.Client
	logs   *logCapture
	tokens *tokens // nil if the server accepts no tokens
}

// newFixture returns a fixture whose server does not listen yet. change may modify its options.
func newFixture(t *testing.T, change ...func(*api.Options, *hub.Options)) *hubFixture {
	t.Helper()
	f := &hubFixture{t: t, store: &ports{Store: memory.New(memory.Options{})}, logs: &logCapture{}}
	var hubOptions hub.Options
	options := api.Options{
		Logger:     slog.New(slog.NewJSONHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Registerer: prometheus.NewRegistry(),
		AdminToken: token,
	}
	for _, c := range change {
		c(&options, &hubOptions)
	}
	hubOptions.Answers = f.store
	f.hub = hub.New(f.store, f.store, f.store, hubOptions)
	options.Hub = f.hub
	options.Operator = hub.NewOperator(options.Hub, f.store, options.Logger)
	options.Mailboxes = survey.New(f.store)
	options.Find = find.New(find.Ports{Finder: f.store, Admin: f.store, Outbox: f.store}, find.Options{})
	f.server = api.New(options)
	return f
}

// serve starts a server. change may modify its options.
func serve(t *testing.T, change ...func(*api.Options, *hub.Options)) *hubFixture {
	t.Helper()
	f := newFixture(t, change...)
	server := httptest.NewUnstartedServer(f.server.Handler())
	api.Harden(server.Config)
	server.Start()
	f.url = server.URL
	document() // loaded now, because loading takes seconds on a busy machine and would distort measured times
	transport := &http.Transport{DisableCompression: true}
	f.client = &http.Client{Transport: &validatingTransport{t: t, next: transport}}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return f
}

// ports are the ports of a hub in memory. A test may replace some of their functions.
type ports struct {
	*memory.Store
	save        func(context.Context, domain.ActorID) error
	next        func(context.Context) error
	nextOf      func(domain.ActorID)
	acknowledge func() error
	open        func(context.Context, repository.Section) (io.ReadCloser, error)
}

func (p *ports) Save(ctx context.Context, recipient domain.ActorID, events []domain.Event) (repository.Saved, error) {
	if p.save != nil {
		if err := p.save(ctx, recipient); err != nil {
			return repository.Saved{}, err
		}
	}
	return p.Store.Save(ctx, recipient, events)
}

func (p *ports) NextUnacknowledged(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (repository.Next, error) {
	if p.nextOf != nil {
		p.nextOf(recipient)
	}
	if p.next != nil {
		if err := p.next(ctx); err != nil {
			return repository.Next{}, err
		}
	}
	return p.Store.NextUnacknowledged(ctx, recipient, groups)
}

func (p *ports) Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	if p.acknowledge != nil {
		if err := p.acknowledge(); err != nil {
			return repository.Acknowledged{}, err
		}
	}
	return p.Store.Acknowledge(ctx, recipient, id)
}

func (p *ports) Open(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
	if p.open != nil {
		return p.open(ctx, s)
	}
	return p.Store.Open(ctx, s)
}

// A logCapture collects the lines that the server logs.
type logCapture struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logCapture) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logCapture) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A domainAnswer is a response whose body was read.
type domainAnswer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// do sends a request as actor 5790001330552. headers are names and values alternately. An empty
// value removes the header, and a repeated name sends it twice.
func (f *hubFixture) do(method, path, body string, headers ...string) domainAnswer {
	f.t.Helper()
	req := f.newRequest(method, path, strings.NewReader(body))
	seen := map[string]bool{}
	for i := 0; i < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		if !seen[name] {
			req.Header.Del(name)
		}
		if seen[name] = true; value != "" {
			req.Header.Add(name, value)
		}
	}
	return f.send(req)
}

// newRequest returns a request as actor 5790001330552 with a JSON body. On a route for operators,
// it contains the operator token.
func (f *hubFixture) newRequest(method, path string, body io.Reader) *http.Request {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, body)
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("X-Actor-Id", actor)
	if f.tokens != nil {
		req.Header.Del("X-Actor-Id")
		req.Header.Set("Authorization", "Bearer "+f.tokens.all)
	} else if strings.HasPrefix(path, "/v1/admin/") || strings.HasPrefix(path, "/v1/objects") {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if req.ContentLength != 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

func (f *hubFixture) send(req *http.Request) domainAnswer {
	f.t.Helper()
	resp, err := f.client.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatalf("%s %s: body: %v", req.Method, req.URL, err)
	}
	return domainAnswer{f.t, resp.StatusCode, resp.Header, string(text)}
}

// post sends events and requires the status of the response.
func (f *hubFixture) post(status int, events ...testEvent) domainAnswer {
	f.t.Helper()
	return f.do("POST", "/v1/data-available", array(events...)).wants(status)
}

func (a domainAnswer) wants(status int) domainAnswer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d; body:\n%s", a.status, status, a.body)
	}
	return a
}

// problem decodes the response, and requires that it is a problem with this status and type.
func (a domainAnswer) problem(status int, typ string) problem {
	a.t.Helper()
	a.wants(status)
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		a.t.Fatalf("body: %v:\n%s", err, a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("Content-Type %q, want application/problem+json", got)
	}
	if want := "urn:messagehub:problem:" + typ; p.Type != want {
		a.t.Errorf("type %q, want %q", p.Type, want)
	}
	return p
}

type problem struct {
	Type, Detail, Instance string
	Errors                 []struct{ Pointer, Detail string }
	Accepted, Duplicates   int
}

// pointers returns the JSON pointers of all faults.
func (p problem) pointers() []string {
	all := make([]string, len(p.Errors))
	for i, e := range p.Errors {
		all[i] = e.Pointer
	}
	return all
}

const actor = "5790001330552"

// A testEvent is the JSON of an event, as a test writes it.
type testEvent map[string]any

// newEvent returns a valid event with id n. change overrides fields: names and values alternately.
func newEvent(n int, change ...any) testEvent {
	e := testEvent{
		"id":               id(n),
		"recipient":        actor,
		"origin":           "TimeSeries",
		"contentType":      "measured-data",
		"documentType":     "NotifyValidatedMeasureData",
		"supportsBundling": true,
		"weight":           1,
	}
	for i := 0; i < len(change); i += 2 {
		e[change[i].(string)] = change[i+1]
	}
	return e
}

// id returns the UUID that ends with the number n.
func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func array(events ...testEvent) string {
	text, err := json.Marshal(events)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func readGolden(t *testing.T, name, got string) string {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v (UPDATE_GOLDEN=1 writes it)", err)
	}
	return string(want)
}

// wait waits until a line that contains text is logged. The server logs a request after it has sent
// the response.
func (l *logCapture) wait(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(l.String(), text); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%q was not logged; the log:\n%s", text, l)
		}
	}
}
