package cosmos

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A storeImage is a store with a copy of its documents, from which a test restores the documents that it
// has damaged.
type storeImage struct {
	*testing.T
	*rig
	actor domain.ActorID
	open  domain.BundleID
	admin *Repository // reads and writes the documents
	docs  map[docPlace]imageDoc
}

type docPlace struct {
	container *azcosmos.ContainerClient
	key, id   string
}

type imageDoc struct {
	etag string
	body map[string]any
}

const (
	imageCapacity = 3
	imageTail     = 2
)

// newStoreImage fills a store with documents of every kind. If hasIntent is true, the head has an intent
// of a dead process.
func newStoreImage(t *testing.T, hasIntent bool) *storeImage {
	s := &storeImage{T: t, rig: newRig(t, embedded.Options{}), actor: repositorytest.NewActor()}
	opts := Options{DrawerCapacity: imageCapacity, TailEvents: imageTail, SweepEvery: -1}
	s.admin = s.node(Options{}, false)
	node := s.node(opts, true)
	saves := func(n int, origin domain.Origin) []domain.Event {
		events := repositorytest.Events(n, s.actor, repositorytest.WithOrigin(origin))
		_, err := node.Save(t.Context(), s.actor, events)
		require.NoError(t, err)
		return events
	}
	for range 3 {
		saves(3, domain.TimeSeries)
	}
	saves(1, domain.TimeSeries)
	saves(1, domain.Charges)
	takes := func() domain.BundleID {
		b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		return b.ID
	}
	_, err := node.Acknowledge(t.Context(), s.actor, takes())
	require.NoError(t, err)
	_, err = node.SweepRecipient(t.Context(), s.actor) // leaves milestones
	require.NoError(t, err)
	events := saves(7, domain.TimeSeries) // the last event is in a drawer that is not full
	saves(1, domain.TimeSeries)
	saves(1, domain.Charges)
	s.open = takes()
	node.AwaitHints(t.Context(), s.actor)
	h, err := node.beginCall("test").readHead(t.Context(), s.actor)
	require.NoError(t, err)
	last := h.Cabinets[nameOf(events[0].Cabinet())]
	require.Equal(t, 1, last.inPages())
	keys := keysOf(map[domain.EventID]domain.Digest{events[6].ID: {}})
	require.NoError(t, node.beginCall("test").writeDrawerFilter(t.Context(), events[0].Cabinet(), &drawerFilter{
		drawer: last.Drawer, ordinal: last.Ordinal, count: 1, set: newFingerprintSet(drawerSegment(last.Ordinal), keys),
	}, &storedFilter{}))
	if hasIntent {
		once := opts
		once.Retries = -1
		dying, line := s.tappedNode(once)
		line.setBefore(atNth(2, isHeadReplacement, func() error { return errors.New("the process ends before the commit") }))
		_, err := dying.Save(t.Context(), s.actor, repositorytest.Events(7, s.actor, repositorytest.WithOrigin(domain.TimeSeries)))
		require.Error(t, err)
	}
	s.docs = s.readDocuments()
	return s
}

// readDocuments returns all stored documents.
func (s *storeImage) readDocuments() map[docPlace]imageDoc {
	s.Helper()
	node := s.admin
	found := make(map[docPlace]imageDoc)
	for _, container := range []*azcosmos.ContainerClient{node.db.catalog, node.db.bundles, node.db.cabinets} {
		q := node.beginCall("test").QueryAllPartitions(container, "", "SELECT * FROM c")
		for !q.IsDone() {
			items, err := q.Next(s.Context(), 1000)
			require.NoError(s, err)
			for _, item := range items {
				var body map[string]any
				d := json.NewDecoder(strings.NewReader(string(item)))
				d.UseNumber()
				require.NoError(s, d.Decode(&body))
				key, isKeyed := body["partitionKey"].(string)
				if !isKeyed {
					key = body["recipient"].(string)
				}
				etag := body["_etag"].(string)
				for _, name := range []string{"_etag", "_ts", "_rid", "_self", "_attachments"} {
					delete(body, name)
				}
				found[docPlace{container, key, body["id"].(string)}] = imageDoc{etag, body}
			}
		}
	}
	return found
}

func (s *storeImage) writeDocument(at docPlace, body map[string]any) {
	s.Helper()
	text, err := json.Marshal(body)
	require.NoError(s, err)
	_, err = at.container.UpsertItem(s.Context(), azcosmos.NewPartitionKeyString(at.key), text, nil)
	require.NoError(s, err)
}

// restoreDocuments restores all documents that have changed.
func (s *storeImage) restoreDocuments() {
	s.Helper()
	now := s.readDocuments()
	for at := range now {
		if _, ok := s.docs[at]; !ok {
			_, err := at.container.DeleteItem(s.Context(), azcosmos.NewPartitionKeyString(at.key), at.id, nil)
			require.NoError(s, err)
		}
	}
	changed := false
	for at, doc := range s.docs {
		if now[at].etag != doc.etag {
			s.writeDocument(at, doc.body)
			changed = true
		}
	}
	if changed {
		for at, doc := range s.readDocuments() {
			require.NotNil(s, s.docs[at].body)
			s.docs[at] = imageDoc{doc.etag, s.docs[at].body}
		}
	}
}

// eachNumber calls visit with the path of each number in a document.
func eachNumber(v any, path []string, visit func(path []string, n json.Number)) {
	switch v := v.(type) {
	case json.Number:
		visit(path, v)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachNumber(v[name], append(slices.Clip(path), name), visit)
		}
	case []any:
		for i := range v[:min(len(v), 2)] {
			eachNumber(v[i], append(slices.Clip(path), strconv.Itoa(i)), visit)
		}
	}
}

// withNumber returns a copy of a document with the number n at path.
func withNumber(t *testing.T, body map[string]any, path []string, n int64) map[string]any {
	text, err := json.Marshal(body)
	require.NoError(t, err)
	var c map[string]any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	require.NoError(t, d.Decode(&c))
	var at any = c
	for i, name := range path {
		last := i == len(path)-1
		switch in := at.(type) {
		case map[string]any:
			if last {
				in[name] = n
			}
			at = in[name]
		case []any:
			index, err := strconv.Atoi(name)
			require.NoError(t, err)
			if last {
				in[index] = n
			}
			at = in[index]
		}
	}
	return c
}

// maxRequestsOfDamage limits the requests of one call, retries included, on a small store with one damaged
// number.
const maxRequestsOfDamage = 500

// If one number in a document is damaged, no call may panic, and each call must end within a limit of
// requests. A call may return a wrong result.
func TestDamagedNumber_EndsEachCallInBoundedRequests(t *testing.T) {
	for _, hasIntent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStoreImage(t, hasIntent)
			seen, cases, most := make(map[string]bool), 0, int64(0)
			for _, at := range slices.SortedFunc(maps.Keys(s.docs), func(a, b docPlace) int { return strings.Compare(a.key+a.id, b.key+b.id) }) {
				damages := func(path []string, n int64) {
					name := s.kindOf(at) + " " + numberName(path)
					if seen[name] || path[0] == "ttl" || hasIntent != isOfIntent(name) {
						return
					}
					seen[name] = true
					values := []int64{-1, 0, n + 1, n * 1000, 1 << 33, 1 << 52}
					switch {
					case raced:
						values = []int64{-1} // one value suffices, because all values execute the same lines
					case !triesEveryCase:
						values = []int64{-1, n + 1, 1 << 33}
					}
					for i, value := range values {
						if value != n && !slices.Contains(values[:i], value) {
							cases++
							most = max(most, s.measureCalls(at, path, n, value))
						}
					}
				}
				eachNumber(s.docs[at].body, nil, func(path []string, number json.Number) {
					if n, err := number.Int64(); err == nil {
						damages(path, n)
					}
				})
				for _, path := range s.absentNumbers(at) {
					damages(path, 0)
				}
			}
			t.Logf("%d damaged numbers, up to %d requests in a call: %v", cases, most, slices.Sorted(maps.Keys(seen)))
			require.Greater(t, len(seen), 8)
		})
	}
}

// kindOf returns the kind of a document. Sealed and unsealed drawers are different kinds.
func (s *storeImage) kindOf(at docPlace) string {
	if body := s.docs[at].body; body["kind"] != nil {
		return body["kind"].(string)
	}
	kind := "entry"
	_, isDrawer := s.docs[at].body["position"]
	switch {
	case isDrawer:
		kind = "drawer"
	case strings.ContainsAny(at.id, "-") && at.container.ID() == s.admin.db.cabinets.ID(): // page-00000, filter-0-00000-00000
		kind = at.id[:strings.LastIndex(at.id[:8], "-")+2]
	case at.id == headID:
		return headID
	}
	if s.docs[at].body["sealed"] == true {
		kind += ", sealed"
	}
	return kind
}

// isOfIntent reports whether a number is used only while the head has an intent.
func isOfIntent(name string) bool {
	return strings.HasPrefix(name, "head intent") || name == "head undone"
}

// absentNumbers returns the paths of the numbers that a document omits while they are 0.
func (s *storeImage) absentNumbers(at docPlace) (paths [][]string) {
	name := nameOf(domain.CabinetKey{Recipient: s.actor, Origin: domain.TimeSeries, ContentType: repositorytest.Event(s.actor).ContentType})
	switch s.kindOf(at) {
	case headID:
		for _, number := range []string{"undone", "removedOrdinal", "removedTotal"} {
			paths = append(paths, []string{number})
		}
		for _, number := range []string{"paged", "baseOrdinal", "baseTotal"} {
			paths = append(paths, []string{"cabinets", name, number})
		}
		paths = append(paths, []string{"retention", name, "milestones", "0", "filled"})
	case gateKind:
		paths = [][]string{{"removed"}, {"at", name, "nextSaved"}, {"at", name, "doubt"}}
	case bundleKind:
		paths = [][]string{{"next"}, {"nextSaved"}, {"bodyLength"}, {"opening"}}
	}
	return paths
}

// numberName returns the path of a number, without cabinet names and array indexes.
func numberName(path []string) string {
	named := slices.Clone(path)
	for i, name := range named {
		if _, err := strconv.Atoi(name); err == nil || strings.Contains(name, "|") {
			named[i] = "*"
		}
	}
	return strings.Join(named, "/")
}

// measureCalls damages one number, makes every call, and returns the largest number of requests that one
// call made.
func (s *storeImage) measureCalls(at docPlace, path []string, before, value int64) (most int64) {
	s.Helper()
	const peekNext, checkAndRepair = "peek of the next bundle", "check and repair"
	s.restoreDocuments()
	damaged := withNumber(s.T, s.docs[at].body, path, value)
	opts := Options{DrawerCapacity: imageCapacity, TailEvents: imageTail, SweepEvery: -1, Exclusive: true, Retries: client.MaxMissing + 1}
	save := func(node *Repository) error {
		_, err := node.Save(s.Context(), s.actor, []domain.Event{
			repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.TimeSeries)), repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.Charges)),
		})
		return err
	}
	peek := func(node *Repository) error {
		_, err := repositorytest.Peek(s.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		return err
	}
	db := s.connect()
	warm := New(db, s.content, opts)
	require.NoError(s, save(warm))
	for _, c := range []struct {
		name string
		call func(node *Repository) error
	}{
		{"warm save", func(*Repository) error { return save(warm) }},
		{"cold save", save},
		{"large save", func(node *Repository) error {
			_, err := node.Save(s.Context(), s.actor, repositorytest.Events(8, s.actor, repositorytest.WithOrigin(domain.TimeSeries)))
			return err
		}},
		{"peek of the open bundle", peek},
		{"dequeue", func(node *Repository) error {
			_, err := node.Acknowledge(s.Context(), s.actor, s.open)
			return err
		}},
		{peekNext, peek},
		{checkAndRepair, func(node *Repository) error {
			_, err := node.Check(s.Context(), CheckOptions{Recipient: s.actor, Repair: true})
			return err
		}},
		{"sweep", func(node *Repository) error {
			node.opts.Retention = 1
			_, err := node.Sweep(s.Context())
			return err
		}},
	} {
		switch {
		case c.name == checkAndRepair && value >= 0 && value != before*1000: // the most expensive call is tried with two of the six values
			continue
		case c.name != peekNext:
			s.writeDocument(at, damaged)
		}
		requests := s.engine.Requests()
		err := c.call(New(db, s.content, opts))
		n := s.engine.Requests() - requests
		require.LessOrEqual(s, n, int64(maxRequestsOfDamage), "%s, %s %s: %d instead of %d: %v", c.name, s.kindOf(at), strings.Join(path, "/"), value, before, err)
		most = max(most, n)
	}
	return most
}
