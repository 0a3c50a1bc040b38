package explorer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An effectStore computes the effects of requests. The effect of a request depends on the content of the partition, so
// the store computes it once for each content: it loads the content into an engine and executes the request there.
type effectStore struct {
	engine  *embedded.Engine
	commits []commitChanges // commits of the current request, as the engine reports them

	contents []*partitionContent
	known    map[string]int // numbers of the known contents, by the text of their documents
	loaded   map[partition]*loadedPartition
	effects  map[effectKey]*effect
}

// A partitionContent is all documents of a partition.
type partitionContent struct {
	id   int
	docs map[string]storedDoc
}

// A storedDoc is a document without the fields that the engine adds. The version of a deleted document is retained, so
// that no etag is used twice.
type storedDoc struct {
	json    string // text of the document; "" if the document is deleted
	version int
}

// commitChanges are the changes of one commit of the engine.
type commitChanges []embedded.Change

// A loadedPartition is the content of a partition in the engine.
type loadedPartition struct {
	content       *partitionContent
	engineTags    map[string]string // etag of the engine, by canonical etag
	canonicalTags map[string]string // canonical etag, by etag of the engine
}

type effectKey struct {
	content int
	request string
}

// An effect is the answer to a request, and the change of its partition.
type effect struct {
	answer  *partyAnswer
	after   int // number of the content after the request
	changes commitChanges
}

func newStore(o embedded.Options) (*effectStore, error) {
	s := &effectStore{known: make(map[string]int), loaded: make(map[partition]*loadedPartition), effects: make(map[effectKey]*effect)}
	var mu sync.Mutex // the requests of a preparation are concurrent
	o.Committed = func(changes []embedded.Change) {
		mu.Lock()
		defer mu.Unlock()
		s.commits = append(s.commits, changes)
	}
	var err error
	if s.engine, err = embedded.Open(o); err != nil {
		return nil, err
	}
	s.internContent(&partitionContent{docs: map[string]storedDoc{}}) // number 0 is the empty content
	return s, nil
}

// internContent returns the number of content c. If c is new, it assigns the next number.
func (s *effectStore) internContent(c *partitionContent) int {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(c.docs)) {
		fmt.Fprintf(&text, "%q %d %s\n", id, c.docs[id].version, c.docs[id].json)
	}
	if id, ok := s.known[text.String()]; ok {
		return id
	}
	c.id = len(s.contents)
	s.contents = append(s.contents, c)
	s.known[text.String()] = c.id
	return c.id
}

// doRequest sends a request to the engine.
func (s *effectStore) doRequest(method, path string, h http.Header, body []byte) (*engineReply, error) {
	return doOn(s.engine, method, path, h, body)
}

// An engineReply is an answer of the engine.
type engineReply struct {
	status int
	header http.Header
	body   []byte
}

// doOn sends a request with the token of an emulator's user, which never expires.
func doOn(engine *embedded.Engine, method, path string, h http.Header, body []byte) (*engineReply, error) {
	req, err := http.NewRequest(method, strings.TrimSuffix(engine.Endpoint(), "/")+path, bytes.NewReader(body)) //nolint:noctx // the transport calls the engine directly
	if err != nil {
		return nil, err
	}
	req.Header = h.Clone()
	req.Header.Set("Authorization", "type=aad&ver=1.0&sig=e30.e30."+base64.RawURLEncoding.EncodeToString([]byte(engine.Key())))
	resp, err := engine.Transport().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return &engineReply{resp.StatusCode, resp.Header, text}, err
}

// applyRequest returns the effect of r on s.contents[from]. If mutate is not nil, it may change a copy of the request
// before the copy is executed.
func (s *effectStore) applyRequest(from int, r *partyRequest, mutate func(*partyRequest)) (*effect, error) {
	key := effectKey{from, r.key}
	if e := s.effects[key]; e != nil {
		return e, nil
	}
	l, err := s.loadContent(r.partition, s.contents[from])
	if err != nil {
		return nil, err
	}
	sent := *r
	sent.header = r.header.Clone()
	if mutate != nil {
		mutate(&sent)
	}
	theirs := func(tag string) string {
		if t, ok := l.engineTags[tag]; ok {
			return t
		}
		if tag == anyTag {
			return tag
		}
		return `"00000000-0000-0000-0000-000000000000"` // tag is the etag of an earlier version, so a condition on tag must fail
	}
	if tag := sent.header.Get(conditionHeader); tag != "" {
		sent.header.Set(conditionHeader, theirs(tag))
	}
	body := sent.body
	if strings.EqualFold(headerOf(sent.header, "x-ms-cosmos-is-batch-request"), "true") {
		if body, err = canonicalize(body, theirs); err != nil {
			return nil, err
		}
	}
	given, more, err := s.continueQuery(&sent)
	if err != nil {
		return nil, err
	}
	if !more { // the previous page was the last page
		return s.noteEffect(key, &effect{after: from, answer: nothingMore})
	}
	s.commits = nil
	resp, err := s.doRequest(sent.method, sent.path, sent.header, body)
	if err != nil {
		return nil, err
	}
	e := &effect{after: from}
	if len(s.commits) > 0 {
		if e.after, e.changes, err = s.noteCommit(l, s.commits[0]); err != nil {
			return nil, err
		}
	}
	e.answer, err = answerOf(resp, given, func(tag string) string {
		if t, ok := l.canonicalTags[tag]; ok {
			return t
		}
		return tag
	})
	if err != nil {
		return nil, err
	}
	return s.noteEffect(key, e)
}

func (s *effectStore) noteEffect(key effectKey, e *effect) (*effect, error) {
	s.effects[key] = e
	return e, nil
}

// nothingMore is the answer with an empty page, which ends a query.
var nothingMore = &partyAnswer{
	key: "nothing more", status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(`{"Documents":[],"_count":0}`),
}

// continueQuery replaces the canonical continuation token of a query, a number of documents, by the engine's token
// for that position. The engine's token is valid only while the partition is loaded.
func (s *effectStore) continueQuery(r *partyRequest) (given int, more bool, err error) {
	token := headerOf(r.header, continuationHeader)
	if token == "" {
		return 0, true, nil
	}
	if given, err = strconv.Atoi(token); err != nil {
		return 0, false, err
	}
	first := r.header.Clone()
	first.Del(continuationHeader)
	first.Set("X-Ms-Max-Item-Count", token)
	resp, err := s.doRequest(r.method, r.path, first, r.body)
	if err != nil {
		return 0, false, err
	}
	theirs := headerOf(resp.header, continuationHeader)
	r.header.Set(continuationHeader, theirs)
	return given, theirs != "", nil
}

// noteCommit applies a commit of the engine to the loaded partition.
func (s *effectStore) noteCommit(l *loadedPartition, commit commitChanges) (int, commitChanges, error) {
	next := &partitionContent{docs: maps.Clone(l.content.docs)}
	changes := make(commitChanges, 0, len(commit))
	for _, c := range commit {
		d := storedDoc{version: next.docs[c.ID].version + 1}
		if c.JSON != nil {
			text, etag, err := stripDocument(c.JSON)
			if err != nil {
				return 0, nil, err
			}
			d.json = text
			ours := fmt.Sprintf(`"%s:%d"`, c.ID, d.version)
			l.engineTags[ours], l.canonicalTags[etag] = etag, ours
			c.JSON = []byte(text)
		}
		next.docs[c.ID] = d
		changes = append(changes, c)
	}
	id := s.internContent(next)
	l.content = s.contents[id]
	return id, changes, nil
}

// stripDocument returns a document without the fields that the engine adds, and its etag.
func stripDocument(text []byte) (string, string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return "", "", err
	}
	var etag string
	if err := json.Unmarshal(fields["_etag"], &etag); err != nil {
		return "", "", err
	}
	for _, name := range append(systemFields, "_etag") {
		delete(fields, name)
	}
	text, err := json.Marshal(fields)
	return string(text), etag, err
}

// loadedPartitionOf returns the loaded content of a partition. Before the first load, the content is empty.
func (s *effectStore) loadedPartitionOf(p partition) *loadedPartition {
	l := s.loaded[p]
	if l == nil {
		l = &loadedPartition{content: s.contents[0], engineTags: make(map[string]string), canonicalTags: make(map[string]string)}
		s.loaded[p] = l
	}
	return l
}

// loadContent loads content c into partition p of the engine.
func (s *effectStore) loadContent(p partition, c *partitionContent) (*loadedPartition, error) {
	l := s.loadedPartitionOf(p)
	if l.content == c {
		return l, nil
	}
	for _, id := range slices.Sorted(maps.Keys(l.content.docs)) {
		if l.content.docs[id].json == "" || l.content.docs[id] == c.docs[id] {
			continue
		}
		if err := removeDocument(s.engine, p, id); err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.docs)) {
		d := c.docs[id]
		if d.json == "" || d == l.content.docs[id] {
			continue
		}
		s.commits = nil
		if err := createDocument(s.engine, p, d.json); err != nil {
			return nil, err
		}
		_, etag, err := stripDocument(s.commits[0][0].JSON)
		if err != nil {
			return nil, err
		}
		ours := fmt.Sprintf(`"%s:%d"`, id, d.version)
		l.engineTags[ours], l.canonicalTags[etag] = etag, ours
	}
	l.content = c
	return l, nil
}

func docsOf(p partition) string { return "/dbs/messagehub/colls/" + p.container + "/docs" }

func createDocument(engine *embedded.Engine, p partition, text string) error {
	r, err := doOn(engine, http.MethodPost, docsOf(p), http.Header{partitionHeader: {p.key}}, []byte(text))
	return r.requireStatus(http.StatusCreated, err)
}

func removeDocument(engine *embedded.Engine, p partition, id string) error {
	r, err := doOn(engine, http.MethodDelete, docsOf(p)+"/"+id, http.Header{partitionHeader: {p.key}}, nil)
	return r.requireStatus(http.StatusNoContent, err)
}

func (r *engineReply) requireStatus(status int, err error) error {
	if err == nil && r.status != status {
		err = fmt.Errorf("the engine answered %d: %s", r.status, r.body)
	}
	return err
}
