package console_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	adminToken = "token-of-the-operators" // token of the operators of the tested hub
	actor      = "5790001330552"
)

// A browser is a client of a hub, with cookies.
type browser struct {
	t           *testing.T
	url         string
	hub         *hub.Hub
	store       *memory.Store
	console     *console.Console
	options     console.Options
	bus         *queueBus
	systems     *systems
	domain      *silentDomain
	noticeRelay *hub.NoticeRelay
	clock       *testClock
	client      *http.Client
	logs        *logCapture
}

// A testClock is the clock of the hub. It advances only when a test calls advance.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A logCapture records the lines of the hub's log.
type logCapture struct {
	mu   sync.Mutex
	text strings.Builder
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

// open starts a hub with pages, and returns a browser that has not signed in. change may modify the
// options.
func open(t *testing.T, change ...func(*console.Options, *api.Options)) *browser {
	t.Helper()
	b := &browser{t: t, store: memory.New(memory.Options{}), clock: &testClock{now: time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)}, logs: &logCapture{}, bus: newQueueBus()}
	b.domain = &silentDomain{}
	b.noticeRelay = hub.NewNoticeRelay(b.store, unreachable{}, hub.NoticeRelayOptions{})
	b.hub = hub.New(b.store, b.store, b.store, hub.Options{
		Answers: b.store, Content: map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
		Requester: b.domain, Exchange: memory.NewExchange(), NoticeRelay: b.noticeRelay,
	})
	t.Cleanup(b.hub.Close)
	log := slog.New(slog.NewJSONHandler(b.logs, nil))
	operator := hub.NewOperator(b.hub, b.store, log)
	registry := prometheus.NewRegistry()
	b.options = console.Options{
		Version: "v1", Operator: operator, Gatherer: registry, Registerer: registry, SessionKey: adminToken, Clock: b.clock.read,
		SendSample: func(context.Context) (domain.ActorID, int, error) {
			b.save(console.SampleActor, "TimeSeries", 5)
			return parseActor(t, console.SampleActor), 5, nil
		},
		Find: &finder{},
		DeadLetters: deadletters.New(deadletters.Options{Bus: b.bus, Actions: b.store, Queues: []deadletters.Queue{
			{Name: "events", Use: "events of domains"}, {Name: "replies", Use: "replies of domains", NoResend: "no request waits"},
		}}),
		Check: func(context.Context, hub.CheckOptions) (hub.CheckReport, error) {
			return hub.CheckReport{Recipients: 1}, nil
		},
	}
	options := api.Options{Hub: b.hub, Operator: operator, AdminToken: adminToken, Logger: log, Registerer: registry, Clock: b.clock.read}
	b.systems = newSystems(t, b.clock.read)
	b.systems.options(&b.options, b.store)
	for _, c := range change {
		c(&b.options, &options)
	}
	b.console = console.New(b.options)
	options.Console = b.console
	server := httptest.NewServer(api.New(options).Handler())
	t.Cleanup(server.Close)
	b.url = server.URL
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { b.console.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	b.client = b.newClient()
	return b
}

// newClient returns a client without cookies. It does not follow redirects.
func (b *browser) newClient() *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(b.t, err)
	transport := &http.Transport{}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// openSignedIn starts a hub as open does, and signs the browser in.
func openSignedIn(t *testing.T, change ...func(*console.Options, *api.Options)) *browser {
	t.Helper()
	b := open(t, change...)
	b.signIn()
	return b
}

// signIn signs in, and returns the location to which the browser is redirected.
func (b *browser) signIn() (location string) {
	b.t.Helper()
	form := b.get("/console/sign-in").form("/console/sign-in")
	form.Set("name", "Kim")
	form.Set("token", adminToken)
	a := b.post("/console/sign-in", form)
	require.Equal(b.t, http.StatusSeeOther, a.status, a.body)
	return a.header.Get("Location")
}

// save stores n events from origin for an actor.
func (b *browser) save(recipient, origin string, n int) {
	b.t.Helper()
	var events []domain.Event
	for range n {
		o, err := domain.ParseOrigin(origin)
		require.NoError(b.t, err)
		contentType, err := domain.ParseContentType("measured-data")
		require.NoError(b.t, err)
		documentType, err := domain.ParseDocumentType("NotifyValidatedMeasureData")
		require.NoError(b.t, err)
		events = append(events, domain.Event{
			ID: newEventID(b.t), Recipient: parseActor(b.t, recipient), Origin: o, ContentType: contentType, DocumentType: documentType,
			SupportsBundling: true, Weight: 1, Payload: []byte(`{"kwh":1.5}`),
		})
	}
	_, err := b.hub.Ingest(b.t.Context(), events)
	require.NoError(b.t, err)
}

// peek opens a bundle of an actor, and returns its id.
func (b *browser) peek(recipient string) string { return b.peekAs(recipient, "") }

// peekAs opens a bundle of an actor, and returns the bundle's id. If id is "", the hub chooses the id.
func (b *browser) peekAs(recipient, id string) string {
	b.t.Helper()
	request := hub.PeekRequest{Actor: parseActor(b.t, recipient)}
	if id != "" {
		var err error
		request.BundleID, err = domain.ParseBundleID(id)
		require.NoError(b.t, err)
	}
	p, err := b.hub.Peek(b.t.Context(), request)
	require.NoError(b.t, err)
	return p.ID.String()
}

func parseActor(t *testing.T, text string) domain.ActorID {
	t.Helper()
	a, err := domain.ParseActorID(text)
	require.NoError(t, err)
	return a
}

// A pageAnswer is a response of the hub.
type pageAnswer struct {
	t      *testing.T
	path   string
	status int
	header http.Header
	body   string
	root   *html.Node
}

func (b *browser) get(path string, header ...string) *pageAnswer {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", header...)
}

// post submits a form to path with the headers that a browser would set. header contains further
// names and values.
func (b *browser) post(path string, form url.Values, header ...string) *pageAnswer {
	b.t.Helper()
	return b.do(http.MethodPost, path, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded", "Origin", b.url}, header...)...)
}

func (b *browser) do(method, path, body string, header ...string) *pageAnswer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(b.t.Context()), method, b.url+path, strings.NewReader(body))
	require.NoError(b.t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := b.client.Do(r)
	require.NoError(b.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	a := &pageAnswer{t: b.t, path: path, status: response.StatusCode, header: response.Header, body: string(text)}
	a.root, err = html.Parse(strings.NewReader(a.body))
	require.NoError(b.t, err)
	return a
}

// wants requires that the response has the given status.
func (a *pageAnswer) wants(status int) *pageAnswer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s: %s", a.path, a.body)
	return a
}

// elements returns all elements with the given tag name.
func (a *pageAnswer) elements(name string) []*html.Node { return elementsOf(a.root, name) }

func elementsOf(n *html.Node, name string) (found []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			found = append(found, d)
		}
	}
	return found
}

// attribute returns an attribute of an element, or "" if the element does not have the attribute.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text inside an element, with each run of white space replaced by one blank.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// text returns the text of the page without its header.
func (a *pageAnswer) text() string {
	a.t.Helper()
	mains := a.elements("main")
	require.Len(a.t, mains, 1, a.body)
	return textOf(mains[0])
}

// form returns the fields of the form that is submitted to path, with their values on the page.
func (a *pageAnswer) form(path string) url.Values {
	a.t.Helper()
	for _, f := range a.elements("form") {
		if attribute(f, "action") != path {
			continue
		}
		fields := make(url.Values)
		for _, input := range elementsOf(f, "input") {
			fields.Set(attribute(input, "name"), attribute(input, "value"))
		}
		for _, area := range elementsOf(f, "textarea") {
			text := ""
			if area.FirstChild != nil {
				text = area.FirstChild.Data
			}
			fields.Set(attribute(area, "name"), text)
		}
		for _, list := range elementsOf(f, "select") {
			for _, option := range elementsOf(list, "option") {
				if strings.Contains(renderedAttributes(option), " selected") || !fields.Has(attribute(list, "name")) {
					fields.Set(attribute(list, "name"), attribute(option, "value"))
				}
			}
		}
		return fields
	}
	require.Fail(a.t, "no form", "%s has no form to %s: %s", a.path, path, a.body)
	return nil
}

func renderedAttributes(n *html.Node) (text string) {
	for _, a := range n.Attr {
		text += " " + a.Key
	}
	return text
}

func newEventID(t *testing.T) domain.EventID {
	t.Helper()
	id, err := domain.ParseEventID(uuid.NewString())
	require.NoError(t, err)
	return id
}
