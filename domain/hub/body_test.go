package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// goldenEvents are three events of one cabinet whose ids end in 1, 2 and 3.
func goldenEvents() []domain.Event {
	events := rt.Events(3, must(domain.ParseActorID("5790001330552")), rt.WithContentType(`time "series" \v1`))
	for i := range events {
		events[i].ID = must(domain.ParseEventID(fmt.Sprintf("0B9F4C5E-7A52-4D57-9D0C-3F1E6B8A2C4%d", i+1)))
	}
	events[0].Payload = []byte(`{"kWh":[1,2]}`)
	events[1].DocumentType = must(domain.ParseDocumentType(`<RSM&012>`))
	events[1].Weight = 20_000
	events[2].Payload = []byte(`"text"`)
	return events
}

func TestManifest_ListsTheEvents(t *testing.T) {
	w := newWorld(t, hub.Options{})
	events := goldenEvents()
	w.sendEvents(events...)
	w.actor = events[0].Recipient
	const cabinet = `"recipient":"5790001330552","origin":"TimeSeries","contentType":"time \"series\" \\v1"`
	require.Equal(t, `[
{"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41",`+cabinet+`,"documentType":"RSM012","supportsBundling":true,"weight":1,"sequence":1,"payload":{"kWh":[1,2]}},
{"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c42",`+cabinet+`,"documentType":"<RSM&012>","supportsBundling":true,"weight":20000,"sequence":2},
{"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c43",`+cabinet+`,"documentType":"RSM012","supportsBundling":true,"weight":1,"sequence":3,"payload":"text"}
]
`, w.body(w.peekBundle()))
}

func TestManifest_OfOneEvent(t *testing.T) {
	w := newWorld(t, hub.Options{})
	event := goldenEvents()[1]
	event.SupportsBundling = false
	w.sendEvents(event)
	w.actor = event.Recipient
	require.Equal(t, `[
{"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c42","recipient":"5790001330552","origin":"TimeSeries","contentType":"time \"series\" \\v1","documentType":"<RSM&012>","supportsBundling":false,"weight":20000,"sequence":1}
]
`, w.body(w.peekBundle()))
}

var inline = hub.Options{Content: map[domain.Origin]domain.ContentMode{domain.TimeSeries: domain.Inline}}

func TestInlineBody_HasOnlyThePayloads(t *testing.T) {
	w := newWorld(t, inline)
	events := goldenEvents()
	events[1].Payload = []byte("null")
	w.sendEvents(events...)
	w.actor = events[0].Recipient
	peeked := w.peekBundle()
	require.Equal(t, domain.Inline, peeked.Content)
	require.Equal(t, "[\n{\"kWh\":[1,2]},\nnull,\n\"text\"\n]\n", w.body(peeked))
}

func TestInlineBody_HasNullForAnEventWithoutPayload(t *testing.T) {
	w := newWorld(t, hub.Options{})
	events := goldenEvents()
	w.sendEvents(events...)
	w.actor = events[0].Recipient
	w.hub = hub.New(w.store, w.store, w.store, inline)
	require.Equal(t, "[\n{\"kWh\":[1,2]},\nnull,\n\"text\"\n]\n", w.body(w.peekBundle()))
}

func TestBundle_KeepsItsContentMode(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(3, rt.WithPayload("{}"))
	open := w.peekBundle()
	body := w.body(open)
	w.hub = hub.New(w.store, w.store, w.store, inline)
	again := w.peekBundle()
	require.Equal(t, domain.Manifest, again.Content)
	require.Equal(t, body, w.body(again))
}

func TestContentMode_IsInlineOnlyForConfiguredOrigins(t *testing.T) {
	w := newWorld(t, inline)
	w.sendNew(1, rt.WithOrigin(domain.Charges))
	require.Equal(t, domain.Manifest, w.peekBundle().Content)
}

// specialLabels contain characters that need care in JSON, HTML or Go.
var specialLabels = []string{
	`"`, `\`, `\"`, `\\`, `"\`, `\u0041`, `\n`, `</script>`, `&amp;`, `{"a":1}`, `'`, "`", `a "b" c`, `%s%d`, "~!@#$%^&*()_+=-",
	strings.Repeat(`"`, 128), strings.Repeat(`\`, 128),
}

func TestManifest_KeepsLabelsUnchanged(t *testing.T) {
	for _, label := range specialLabels {
		t.Run(label, func(t *testing.T) { checkLabels(t, label, label) })
	}
}

func FuzzLabelsInTheBody(f *testing.F) {
	for _, label := range specialLabels {
		f.Add(label, label)
	}
	f.Fuzz(func(t *testing.T, contentType, documentType string) {
		_, err1 := domain.ParseContentType(contentType)
		_, err2 := domain.ParseDocumentType(documentType)
		if err1 == nil && err2 == nil {
			checkLabels(t, contentType, documentType)
		}
	})
}

// checkLabels checks that a manifest contains the labels exactly as the domain has sent them.
func checkLabels(t *testing.T, contentType, documentType string) {
	w := newWorld(t, hub.Options{})
	sent := w.sendNew(2, rt.WithContentType(contentType), rt.WithDocumentType(documentType), rt.WithPayload(`{"a":"}]"}`))
	peeked := w.peekBundle()
	require.True(t, json.Valid([]byte(w.body(peeked))))
	for i, got := range w.readManifest(peeked) {
		require.Equal(t, manifestLine{
			ID:               sent[i].ID.String(),
			Recipient:        w.actor.String(),
			Origin:           "TimeSeries",
			ContentType:      contentType,
			DocumentType:     documentType,
			SupportsBundling: true,
			Weight:           1,
			Sequence:         int64(i + 1),
			Payload:          json.RawMessage(`{"a":"}]"}`),
		}, got)
	}
}

func TestBody_IsTheSameAfterAFailedWrite(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(2, rt.WithPayload(`{"a":1}`))
	w.sendNew(2, rt.WithPayload(`{"a":2}`)) // the payloads of these events are in a second object
	failure := domain.Errorf(domain.Unavailable, "out of reach")
	broken := true
	w.replaceCalls(replacedStore{open: func(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
		if broken {
			return nil, failure
		}
		return w.store.Open(ctx, s)
	}}, hub.Options{})
	peeked := w.peekBundle()
	w.requireNoBody(peeked, failure, domain.Unavailable)

	broken = false
	require.Equal(t, w.body(w.peekBundle()), w.body(peeked))
}
