package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// A generatedContent is a document with a part for each event of a bundle. It
// is generated while it is read, so that it may have any size; only the ids are
// in memory.
type generatedContent struct {
	ids           []uuid.UUID
	head, tail    string
	before, after func(id uuid.UUID) string // before and after return the text that surrounds the data of an event
	filling       int64                     // remaining number of data bytes for all remaining events

	next int       // index of the next event
	part io.Reader // part of the current event; nil before the first Read
}

// newContent returns content of size bytes, or of more bytes if the ids require
// it.
func newContent(r *domainclient.Request, format domainclient.Format, ids []uuid.UUID, size int64) *generatedContent {
	c := &generatedContent{ids: ids}
	if format == domainclient.FormatXML {
		c.head = `<?xml version="1.0" encoding="UTF-8"?>` + "\n<bundle id=\"" + escapeXML(r.IdempotencyID) + `" contentType="` + escapeXML(r.ContentType) + "\">\n"
		c.before = func(id uuid.UUID) string { return `<event id="` + id.String() + `">` }
		c.after = func(uuid.UUID) string { return "</event>\n" }
		c.tail = "</bundle>\n"
	} else {
		c.head = `{"bundle":` + quoteJSON(r.IdempotencyID) + `,"contentType":` + quoteJSON(r.ContentType) + `,"events":[` + "\n"
		c.before = func(id uuid.UUID) string {
			comma := ","
			if c.next == 0 {
				comma = " "
			}
			return comma + `{"id":"` + id.String() + `","data":"`
		}
		c.after = func(uuid.UUID) string { return "\"}\n" }
		c.tail = "]}\n"
	}
	around := len(c.before(uuid.Nil)) + len(c.after(uuid.Nil)) // all ids have the same length
	c.filling = max(0, size-int64(len(c.head)+len(ids)*around+len(c.tail)))
	return c
}

// Read implements io.Reader.
func (c *generatedContent) Read(p []byte) (int, error) {
	if c.part == nil {
		c.part = strings.NewReader(c.head)
	}
	for {
		n, err := c.part.Read(p)
		if n > 0 || err != io.EOF {
			return n, err
		}
		switch {
		case c.next < len(c.ids):
			id := c.ids[c.next]
			share := c.filling / int64(len(c.ids)-c.next) // the last event contains the remainder
			c.filling -= share
			c.part = io.MultiReader(strings.NewReader(c.before(id)), io.LimitReader(filler{}, share), strings.NewReader(c.after(id)))
		case c.next == len(c.ids):
			c.part = strings.NewReader(c.tail)
		default:
			return 0, io.EOF
		}
		c.next++
	}
}

// A filler is an endless reader of text that requires no escaping in any
// format.
type filler struct{}

func (filler) Read(p []byte) (int, error) {
	const pattern = "0123456789 data of the simulated domain; "
	for n := 0; n < len(p); {
		n += copy(p[n:], pattern)
	}
	return len(p), nil
}

func quoteJSON(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(text)
}

func escapeXML(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // writing to a builder never fails
	}
	return b.String()
}
