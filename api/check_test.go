package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

func checking(check hub.Checker) func(*api.Options, *hub.Options) {
	return func(o *api.Options, _ *hub.Options) { o.Check = check }
}

func noFindings(context.Context, hub.CheckOptions) (hub.CheckReport, error) {
	return hub.CheckReport{Findings: []hub.Finding{}}, nil
}

var finding = hub.Finding{Rule: "H10", Kind: "entry-gone", Recipient: actor, Where: "entry 1", Text: "it is not there", Repaired: true}

// checkLine is one line of the response to a check.
type checkLine struct {
	Progress *hub.CheckReport
	Finding  *hub.Finding
	Report   *hub.CheckReport
	Problem  *problem
}

// checkLines parses the lines of a response, and validates each against openapi.yaml.
func checkLines(t *testing.T, body string) (lines []checkLine) {
	t.Helper()
	doc, _ := document()
	for text := range strings.Lines(body) {
		var value any
		require.NoError(t, json.Unmarshal([]byte(text), &value), text)
		require.NoError(t, doc.Components.Schemas["CheckLine"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()), text)
		var line checkLine
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		lines = append(lines, line)
	}
	return lines
}

func TestCheck_WritesProgressFindingsAndTheReport(t *testing.T) {
	var asked hub.CheckOptions
	f := serve(t, local, checking(func(_ context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
		asked = opts
		opts.Progress(hub.CheckReport{Recipients: 1, Findings: []hub.Finding{}})
		opts.Progress(hub.CheckReport{Recipients: 2, Found: 1, Repaired: 1, Resume: "two", Findings: []hub.Finding{finding}})
		return hub.CheckReport{Recipients: 3, Found: 2, Repaired: 2, Findings: []hub.Finding{finding, finding}}, nil
	}))
	a := f.do("POST", "/v1/admin/check", `{"repair":true,"actor":"","resume":"one"}`).wants(200)
	require.Equal(t, "application/x-ndjson", a.header.Get("Content-Type"))
	lines := checkLines(t, a.body)
	require.Len(t, lines, 5)
	require.Equal(t, &hub.CheckReport{Recipients: 1}, lines[0].Progress)
	require.Equal(t, &finding, lines[1].Finding, "before the progress that counts it")
	require.Equal(t, &hub.CheckReport{Recipients: 2, Found: 1, Repaired: 1, Resume: "two"}, lines[2].Progress)
	require.Equal(t, &finding, lines[3].Finding)
	require.Equal(t, &hub.CheckReport{Recipients: 3, Found: 2, Repaired: 2, Findings: []hub.Finding{finding, finding}}, lines[4].Report)
	require.True(t, asked.Repair)
	require.Equal(t, "one", asked.Resume)
	require.Zero(t, asked.Actor)

	f.do("POST", "/v1/admin/check", `{"actor":"`+actor+`"}`).wants(200)
	require.Equal(t, actor, asked.Actor.String())
	require.False(t, asked.Repair)
}

func TestCheck_IsRefusedForAnInvalidRequest(t *testing.T) {
	f := serve(t, local, checking(func(context.Context, hub.CheckOptions) (hub.CheckReport, error) {
		t.Error("it has begun")
		return hub.CheckReport{}, nil
	}))
	for body, want := range map[string]string{
		`{"repair":"yes"}`:              "invalid",
		`{"mend":true}`:                 "invalid",
		`{"actor":"a b"}`:               "invalid-actor",
		`{"actor":"a","resume":"x"}`:    "invalid",
		`{"repair":true,"repair":true}`: "invalid",
		`true`:                          "not-json",
		`{"repair":tru}`:                "invalid",
	} {
		f.do("POST", "/v1/admin/check", body).problem(400, want)
	}
	// The body exceeds the limit by one byte, so the server reads all of it. If bytes remained, the
	// server would reset the connection before the client reads the response.
	f.do("POST", "/v1/admin/check", `{"resume":"`+strings.Repeat("x", 256<<10+1-len(`{"resume":""}`))+`"}`).problem(413, "body-too-large")
	serve(t, local).do("POST", "/v1/admin/check", "{}").problem(404, "no-such-route")
}

func TestCheck_ReportsItsFailureInTheLastLine(t *testing.T) {
	f := serve(t, local, checking(func(_ context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
		opts.Progress(hub.CheckReport{Recipients: 1})
		return hub.CheckReport{Found: 1, Findings: []hub.Finding{finding}}, domain.Errorf(domain.Unavailable, "no luck with %s", "secret")
	}))
	lines := checkLines(t, f.do("POST", "/v1/admin/check", "{}").wants(200).body)
	require.Len(t, lines, 3)
	require.Equal(t, &finding, lines[1].Finding)
	require.Equal(t, "urn:messagehub:problem:unavailable", lines[2].Problem.Type)
	f.logs.wait(t, "no luck with secret")
}

func TestCheck_ThatPanicsIsAProblemAndTheHubContinues(t *testing.T) {
	f := serve(t, local, checking(func(context.Context, hub.CheckOptions) (hub.CheckReport, error) { panic("a bug") }))
	lines := checkLines(t, f.do("POST", "/v1/admin/check", "{}").wants(200).body)
	require.Equal(t, "urn:messagehub:problem:internal", lines[0].Problem.Type)
	f.logs.wait(t, "panic: a bug")
	f.do("GET", "/healthz", "").wants(200)
}

// An endlessCheck runs until its context ends. It reports when it starts and why it ended.
type endlessCheck struct {
	begun chan struct{}
	ended chan error
}

func newEndlessCheck() *endlessCheck {
	return &endlessCheck{make(chan struct{}, 1), make(chan error, 1)}
}

func (e *endlessCheck) check(ctx context.Context, _ hub.CheckOptions) (hub.CheckReport, error) {
	e.begun <- struct{}{}
	<-ctx.Done()
	e.ended <- context.Cause(ctx)
	return hub.CheckReport{Findings: []hub.Finding{}}, ctx.Err()
}

func TestCheck_RunsOneAtATime(t *testing.T) {
	e := newEndlessCheck()
	f := serve(t, local, checking(e.check))
	ctx, leave := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		req := f.newRequest("POST", "/v1/admin/check", strings.NewReader("{}")).WithContext(ctx)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		over <- err
	}()
	<-e.begun
	p := f.do("POST", "/v1/admin/check", "{}").problem(429, "busy")
	require.Contains(t, p.Detail, "one can run at a time")
	leave()
	require.ErrorIs(t, <-e.ended, context.Canceled, "it ends with its client")
	<-over
	f.logs.wait(t, `"status":"aborted"`)
}

func TestCheck_EndsWhenTheServerDrains(t *testing.T) {
	var e *endlessCheck
	inOperatorBubble(t, func(ctx context.Context, opts hub.CheckOptions) (hub.CheckReport, error) { return e.check(ctx, opts) }, func(b *bubble) {
		e = newEndlessCheck() // created inside the bubble, because its channels must belong to the bubble
		conn := b.dial()
		answered := make(chan string, 1)
		go func() {
			resp := b.exchange(conn, operatorRequest("/v1/admin/check", "{}"))
			text, err := io.ReadAll(resp.Body)
			require.NoError(b.t, err)
			answered <- string(text)
		}()
		synctest.Wait()
		b.f.server.SetDraining()
		lines := checkLines(b.t, <-answered)
		require.Equal(b.t, "urn:messagehub:problem:not-ready", lines[len(lines)-1].Problem.Type)
		require.Equal(b.t, 503, b.exchange(b.dial(), operatorRequest("/v1/admin/check", "{}")).StatusCode, "nor does another begin")
	})
}

func TestCheck_RunsUntilItsClientDisconnects(t *testing.T) {
	const span = 2 * time.Hour
	inOperatorBubble(t, func(ctx context.Context, _ hub.CheckOptions) (hub.CheckReport, error) {
		select {
		case <-time.After(span):
			return hub.CheckReport{Findings: []hub.Finding{}}, nil
		case <-ctx.Done():
			return hub.CheckReport{}, errors.New("it was ended")
		}
	}, func(b *bubble) {
		start := time.Now()
		resp := b.exchange(b.dial(), operatorRequest("/v1/admin/check", "{}"))
		text, err := io.ReadAll(resp.Body)
		require.NoError(b.t, err)
		require.Equal(b.t, span, time.Since(start))
		lines := strings.SplitAfter(strings.TrimSpace(string(text)), "\n")
		require.Greater(b.t, len(lines), 1000, "a line every few seconds")
		require.NotNil(b.t, checkLines(b.t, lines[len(lines)-1])[0].Report)
	})
}

func TestCheck_EndsWhenItsClientStopsReading(t *testing.T) {
	var e *endlessCheck
	inOperatorBubble(t, func(ctx context.Context, opts hub.CheckOptions) (hub.CheckReport, error) { return e.check(ctx, opts) }, func(b *bubble) {
		e = newEndlessCheck() // created inside the bubble, because its channels must belong to the bubble
		conn := b.dial()
		_, err := io.WriteString(conn, operatorRequest("/v1/admin/check", "{}"))
		require.NoError(b.t, err)
		start := time.Now()
		require.Error(b.t, <-e.ended)
		require.Less(b.t, time.Since(start), time.Minute)
	})
}
