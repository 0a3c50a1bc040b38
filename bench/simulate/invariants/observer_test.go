package invariants

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

type documentFields = map[string]any

// putDocument returns the change that stores a document, or that deletes it if doc is nil.
func putDocument(container, partition, id string, doc documentFields) embedded.Change {
	c := embedded.Change{Database: "messagehub", Container: container, ID: id}
	setText(&c.Partition, partition)
	if doc != nil {
		c.JSON, _ = json.Marshal(doc)
	}
	return c
}

// setText sets a string field whose type is not exported.
func setText[S ~string](to *S, text string) { *to = S(text) }

const (
	cab   = "TimeSeries|ts"
	first = "drawer-1"
	next  = "drawer-2"
)

func headOf(watermark, reserved int, it, cabinets documentFields, more ...documentFields) embedded.Change {
	doc := documentFields{"id": "head", "partitionKey": "a", "reserved": reserved, "watermark": watermark, "cabinets": cabinets}
	if it != nil {
		doc["intent"] = it
	}
	for _, m := range more {
		doc["retention"] = m
	}
	return putDocument("catalog", "a", "head", doc)
}

func intentOf(id string, from, to int, parts ...documentFields) documentFields {
	return documentFields{"id": id, "owner": "o", "first": from, "last": to, "parts": parts}
}

func abortedIntent(it documentFields) documentFields {
	doomed := documentFields{"aborted": true}
	for k, v := range it {
		doomed[k] = v
	}
	return doomed
}

func partOf(drawer string, ordinal, slot, count, from, to int, isNew bool) documentFields {
	return documentFields{"cabinet": cab, "drawer": drawer, "ordinal": ordinal, "slot": slot, "count": count, "first": from, "last": to, "new": isNew}
}

func cabinetState(drawer string, fill, ordinal, sequence, total int) documentFields {
	return documentFields{cab: documentFields{"drawer": drawer, "fill": fill, "ordinal": ordinal, "sequence": sequence, "total": total}}
}

func drawerOf(id string, ordinal, from, count int, sealed bool, operation string) embedded.Change {
	return putDocument("cabinet", "a|"+cab, id, documentFields{
		"id": id, "partitionKey": "a|" + cab, "ordinal": ordinal, "firstSequence": from, "count": count, "sealed": sealed, "operation": operation,
	})
}

func pageOf(drawer, it string, slot, until, from int) embedded.Change {
	id := "page-" + string(rune('0'+slot))
	return putDocument("cabinet", drawer, id, documentFields{
		"id": id, "partitionKey": drawer, "intent": it, "slot": slot, "until": until, "firstSequence": from,
	})
}

func gateOf(generation int, open string, at documentFields) embedded.Change {
	return putDocument("bundles", "a", "gate.g", documentFields{
		"id": "gate.g", "recipient": "a", "kind": "gate", "generation": generation, "open": open, "at": documentFields{cab: at},
	})
}

func placeOf(ordinal, slot, sequence, total int) documentFields {
	return documentFields{"ordinal": ordinal, "slot": slot, "sequence": sequence, "total": total}
}

func bundleOf(id, state string, from, to, count int, start documentFields, ranges ...documentFields) embedded.Change {
	return putDocument("bundles", "a", id, documentFields{
		"id": id, "recipient": "a", "kind": "bundle", "state": state, "group": "g", "cabinet": cab, "count": count,
		"first": from, "last": to, "ranges": ranges, "start": start,
	})
}

// requestedBundle returns a bundle whose content is produced on request.
func requestedBundle(state string, ranges ...documentFields) embedded.Change {
	c := bundleOf("b1", state, 1, 3, 3, origin, ranges...)
	doc := documentFields{}
	_ = json.Unmarshal(c.JSON, &doc)
	doc["content"] = "request"
	return putDocument("bundles", "a", "b1", doc)
}

func noticeOf(bundle string, number int) embedded.Change {
	return putDocument("bundles", "a", "notice|g|1", documentFields{"id": "notice|g|1", "recipient": "a", "kind": "notice", "number": number, "bundle": bundle})
}

// gateWithSubscribers returns a gate with subscribers.
func gateWithSubscribers(generation int, open string, at documentFields) embedded.Change {
	c := gateOf(generation, open, at)
	doc := documentFields{}
	_ = json.Unmarshal(c.JSON, &doc)
	doc["dequeueRequests"] = []string{"s"}
	return putDocument("bundles", "a", "gate.g", doc)
}

func dequeueNoticeOf(bundle string, number int) embedded.Change {
	return putDocument("bundles", "a", "dequeued|g|1", documentFields{
		"id": "dequeued|g|1", "recipient": "a", "kind": "notice", "audience": "subscribers", "number": number, "bundle": bundle,
	})
}

// watchedBundle returns a watched bundle with a number of changes.
func watchedBundle(state string, changes int) embedded.Change {
	c := bundleOf("b1", state, 1, 3, 3, origin, b1)
	doc := documentFields{}
	_ = json.Unmarshal(c.JSON, &doc)
	doc["watched"], doc["changes"] = true, changes
	return putDocument("bundles", "a", "b1", doc)
}

func changeOf(bundle string, number, version int) embedded.Change {
	return putDocument("bundles", "a", "watched|g|1", documentFields{
		"id": "watched|g|1", "recipient": "a", "kind": "notice", "audience": "watchers", "number": number, "bundle": bundle, "version": version,
	})
}

// expiringBundle returns a watched bundle with the given state. The members in how determine when the bundle is
// removed.
func expiringBundle(state string, how documentFields) embedded.Change {
	c := watchedBundle(state, 1)
	doc := documentFields{}
	_ = json.Unmarshal(c.JSON, &doc)
	for name, value := range how {
		doc[name] = value
	}
	return putDocument("bundles", "a", "b1", doc)
}

func removalOf(bundle string, version int) embedded.Change {
	return putDocument("bundles", "a", "watched~removed|g|"+bundle, documentFields{
		"id": "watched~removed|g|" + bundle, "recipient": "a", "kind": "notice", "audience": "watchers of removal", "bundle": bundle, "version": version,
	})
}

func slotsOf(drawer string, ordinal, from, to int) documentFields {
	return documentFields{"drawer": drawer, "ordinal": ordinal, "from": from, "to": to}
}

func recordOf(what string) embedded.Change {
	return putDocument("bundles", "a", "record."+what, documentFields{"id": "record." + what, "recipient": "a", "kind": "record", "what": what})
}

type changeList = []embedded.Change

var (
	origin = placeOf(0, 0, 0, 0)
	behind = placeOf(1, 3, 3, 3)

	save1 = intentOf("i1", 1, 4, partOf(first, 1, 0, 3, 1, 3, true), partOf(next, 2, 0, 1, 4, 4, true))
	save2 = intentOf("i2", 5, 5, partOf(next, 2, 1, 1, 5, 5, false))

	empty   = documentFields{}
	filled  = cabinetState(next, 1, 2, 4, 4)
	b1      = slotsOf(first, 1, 0, 3)
	b1open  = bundleOf("b1", "open", 1, 3, 3, origin, b1)
	b1taken = bundleOf("b1", "dequeued", 1, 3, 3, origin, b1)

	// These commits, in this order, are a history without violations.
	reserve1 = changeList{headOf(0, 4, save1, empty)}
	pages1   = changeList{pageOf(first, "i1", 0, 3, 1)}
	pages2   = changeList{pageOf(next, "i1", 0, 1, 4)}
	count1   = changeList{drawerOf(first, 1, 1, 3, false, "i1"), drawerOf(next, 2, 4, 1, false, "i1")}
	commit1  = changeList{headOf(4, 4, nil, filled)}
	open1    = changeList{b1open, gateOf(1, "b1", origin)}
	dequeue1 = changeList{b1taken, gateOf(2, "", behind)}
	saved    = []changeList{reserve1, pages1, pages2, count1, commit1}
	opened   = append(saved[:5:5], open1)
	dequeued = append(opened[:6:6], dequeue1)
	reserve2 = changeList{headOf(4, 5, save2, filled)}
	claim2   = changeList{headOf(4, 5, abortedIntent(save2), filled)}
	seal2    = changeList{drawerOf(next, 2, 4, 1, true, "i1")}
	undone   = cabinetState("", 0, 2, 4, 4)
	clear2   = changeList{headOf(4, 5, nil, undone)}
	filling  = append(saved[:5:5], reserve2)
	claimed  = append(saved[:5:5], reserve2, claim2)
	sealed   = append(claimed[:7:7], seal2)
	cleared  = append(sealed[:8:8], clear2)
	b2       = slotsOf(next, 2, 0, 1)
	end      = placeOf(2, 1, 4, 4)
	open2    = changeList{bundleOf("b2", "open", 4, 4, 1, behind, b2), gateOf(3, "b2", behind)}
	dequeue2 = changeList{bundleOf("b2", "dequeued", 4, 4, 1, behind, b2), gateOf(4, "", end)}
	made     = append(saved[:5:5], changeList{requestedBundle("open", b1), gateOf(1, "b1", origin)})
	noticed  = append(made[:6:6], changeList{requestedBundle("dequeued", b1), gateOf(2, "", behind), noticeOf("b1", 2)})
	watched  = append(opened[:6:6], changeList{watchedBundle("open", 0)})
	expiring = append(watched[:7:7], changeList{expiringBundle("dequeued", documentFields{"expires": 9}), gateOf(2, "", behind), changeOf("b1", 2, 1)})
	b1gone   = putDocument("bundles", "a", "b1", nil)
	emptied  = append(cleared[:9:9], open1, dequeue1, open2, dequeue2, changeList{headOf(4, 5, nil, undone, gone)})
	gone     = documentFields{cab: documentFields{"floor": 3, "cleared": 3}}
	removed  = append(emptied[:14:14], changeList{afterRemoval(2, 4)})
	floored  = append(dequeued[:7:7], open2, dequeue2, changeList{headOf(4, 4, nil, filled, documentFields{cab: documentFields{"floor": 2}})})
)

// afterRemoval returns a head from which the cabinet was removed.
func afterRemoval(ordinal, total int) embedded.Change {
	return putDocument("catalog", "a", "head", documentFields{
		"id": "head", "partitionKey": "a", "reserved": 5, "watermark": 4, "cabinets": empty, "removedOrdinal": ordinal, "removedTotal": total,
	})
}

// gateWithout returns a gate that has no position in the cabinet, because the cabinet was removed.
func gateWithout(generation, removed int) embedded.Change {
	return putDocument("bundles", "a", "gate.g", documentFields{
		"id": "gate.g", "recipient": "a", "kind": "gate", "generation": generation, "at": documentFields{}, "removed": removed,
	})
}

// headAfterReuse returns a head with an intent for the cabinet, after the cabinet was removed.
func headAfterReuse(ordinal int) embedded.Change {
	return putDocument("catalog", "a", "head", documentFields{
		"id": "head", "partitionKey": "a", "reserved": 6, "watermark": 4, "cabinets": empty, "removedOrdinal": 2, "removedTotal": 4,
		"intent": intentOf("i6", 6, 6, partOf("drawer-6", ordinal, 0, 1, 6, 6, true)),
	})
}

func observeHistory(t *testing.T, history []changeList) *Observer {
	t.Helper()
	o := New(3)
	for i, c := range history {
		require.NoError(t, o.Commit(c), "commit %d", i)
	}
	return o
}

func TestObserver_AcceptsACorrectHistory(t *testing.T) {
	observeHistory(t, append(removed[:15:15], changeList{gateWithout(5, 4)}, changeList{headAfterReuse(3)}))
	observeHistory(t, append(removed[:15:15], changeList{headAfterReuse(3)}, changeList{gateWithout(5, 4)}))
	observeHistory(t, append(cleared[:9:9], open1, dequeue1, open2, dequeue2, changeList{headOf(4, 5, nil, undone, documentFields{cab: documentFields{"floor": 2}})},
		changeList{putDocument("cabinet", first, "page-0", nil)}, changeList{putDocument("cabinet", "a|"+cab, first, nil)}))
	observeHistory(t, append(dequeued[:7:7], changeList{bundleOf("b1", "open", 1, 3, 3, origin, b1), gateOf(3, "b1", origin), recordOf("replay")},
		changeList{bundleOf("b1", "released", 1, 3, 3, origin, b1), gateOf(4, "", origin), recordOf("release")}))
	observeHistory(t, append(opened[:6:6], changeList{bundleOf("b1", "skipped", 1, 3, 3, origin, b1), gateOf(2, "", behind), recordOf("skip")}))
	observeHistory(t, append(opened[:6:6], changeList{gateWithSubscribers(2, "b1", origin)}, changeList{b1taken, gateWithSubscribers(3, "", behind), dequeueNoticeOf("b1", 3)}))
	observeHistory(t, append(noticed[:7:7], changeList{putDocument("bundles", "a", "notice|g|1", nil)}))
	o := observeHistory(t, append(watched[:7:7], changeList{watchedBundle("dequeued", 1), gateOf(2, "", behind), changeOf("b1", 2, 1)}, changeList{putDocument("bundles", "a", "watched|g|1", nil)}))
	require.EqualValues(t, 1, o.Changes("a", "b1"))
	require.Zero(t, o.Changes("b", "b1"))
	o = observeHistory(t, append(expiring[:8:8], changeList{b1gone, removalOf("b1", 2)}, changeList{putDocument("bundles", "a", "watched~removed|g|b1", nil)}))
	require.EqualValues(t, 2, o.Changes("a", "b1"))
	require.EqualValues(t, 2, o.Removal("a", "b1"))
	require.Zero(t, o.Removal("b", "b1"))
	observeHistory(t, append(watched[:7:7], changeList{watchedBundle("skipped", 0), gateOf(2, "", behind), recordOf("skip")}))
	observeHistory(t, append(made[:6:6], changeList{requestedBundle("skipped", b1), gateOf(2, "", behind), recordOf("skip")}))
	observeHistory(t, append(dequeued[:7:7], changeList{headOf(4, 4, nil, filled, documentFields{cab: documentFields{"floor": 2}})})) // the gate is after the removed drawer
	observeHistory(t, append(floored[:10:10], changeList{drawerOf(first, 1, 1, 3, true, "i0")}))                                      // documents below the floor are not checked
}

// In each case, a commit after a valid history breaks one rule. The observer must report the violation.
func TestObserver_FindsEachViolation(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rule    string
		after   []changeList
		wrong   changeList
		because string
	}{
		{"a head that is removed", "H1", saved, changeList{putDocument("catalog", "a", "head", nil)}, "the head was removed"},
		{"a document that cannot be read", "H1", saved, changeList{{Container: "catalog", ID: "head", JSON: []byte("{")}}, "cannot be read"},

		{"a reserved number that goes back", "H3", saved, changeList{headOf(4, 3, nil, filled)}, "went back from 4 to 3"},
		{"numbers reserved without an intent", "H3", saved, changeList{headOf(4, 5, nil, filled)}, "without an intent"},
		{"numbers assigned twice", "H3", saved, changeList{headOf(4, 4, intentOf("i2", 4, 4, partOf(next, 2, 1, 1, 4, 4, false)), filled)}, "numbers 4 to 4"},
		{"an intent that reappears", "H3", cleared, changeList{headOf(4, 6, intentOf("i2", 6, 6, partOf("d3", 3, 0, 1, 6, 6, true)), undone)}, "was used before"},
		{"an intent that changes", "H3", filling, changeList{headOf(4, 6, intentOf("i2", 5, 6, partOf(next, 2, 1, 2, 5, 6, false)), filled)}, "the intent i2 has changed"},
		{"more numbers than events", "H3", saved, changeList{headOf(4, 6, intentOf("i2", 5, 6, partOf(next, 2, 1, 1, 5, 5, false)), filled)}, "has 2 numbers for 1 events"},
		{"a part with numbers of others", "H3", saved, changeList{headOf(4, 5, intentOf("i2", 5, 5, partOf(next, 2, 1, 1, 4, 4, false)), filled)}, "numbers 4 to 4"},
		{"a page with other numbers", "H3", filling, changeList{pageOf(next, "i2", 1, 2, 4)}, "begins with number 4"},

		{"a watermark that decreases", "H5", saved, changeList{headOf(3, 4, nil, filled)}, "went from 4 to 3"},
		{"a watermark above the reserved numbers", "H5", filling, changeList{headOf(6, 5, nil, filled)}, "from 4 to 6"},
		{"a watermark without an intent", "H5", append(saved[:5:5], changeList{headOf(4, 4, nil, filled)}), changeList{headOf(5, 5, nil, filled)}, "without an intent or a small Save"},
		{"a watermark beside the intent", "H5", []changeList{reserve1, pages1, pages2, count1}, changeList{headOf(3, 4, nil, filled)}, "ends at 4"},
		{"a commit after a claim", "H5", claimed, changeList{headOf(5, 5, nil, cabinetState(next, 2, 2, 5, 5))}, "after it had been claimed"},
		{"a claim that is removed", "H5", claimed, changeList{headOf(4, 5, save2, filled)}, "for rollback was removed"},
		{"an intent that is removed without a claim", "H5", filling, changeList{headOf(4, 5, nil, undone)}, "neither committed nor claimed"},
		{"a bundle above the watermark", "H5", saved, changeList{bundleOf("b1", "open", 1, 5, 5, origin, b1, slotsOf(next, 2, 0, 2)), gateOf(1, "b1", origin)}, "above the watermark"},
		{"a bundle of slots that are not committed", "H5", append(filling[:6:6], open1, dequeue1, changeList{drawerOf(next, 2, 4, 2, false, "i2")}), changeList{bundleOf("b2", "open", 4, 4, 2, behind, slotsOf(next, 2, 0, 2)), gateOf(3, "b2", behind)}, "of which only 1 are committed"},

		{"a bundle that begins before the last one", "H4", dequeued, changeList{bundleOf("b0", "open", 1, 1, 1, behind, slotsOf(next, 2, 0, 1)), gateOf(3, "b0", behind)}, "an event was skipped"},
		{"two open bundles", "H6", opened, changeList{bundleOf("b2", "open", 1, 3, 3, origin, b1), gateOf(2, "b2", origin)}, "of the same group"},
		{"an open bundle that no gate has", "H6", saved, changeList{b1open}, "its gate does not refer to it"},
		{"a gate without its bundle", "H6", saved, changeList{gateOf(1, "b1", origin)}, "does not exist or is not open"},
		{"a bundle closed without its gate", "H6", opened, changeList{b1taken}, "does not exist or is not open"},
		{"an open bundle that is removed", "H6", opened, changeList{putDocument("bundles", "a", "b1", nil), gateOf(2, "", origin)}, "an open bundle was removed"},
		{"a bundle that changes", "H6", opened, changeList{bundleOf("b1", "open", 1, 2, 2, origin, slotsOf(first, 1, 0, 2))}, "a bundle has changed"},
		{"a bundle that counts wrongly", "H6", saved, changeList{bundleOf("b1", "open", 1, 2, 2, origin, b1), gateOf(1, "b1", origin)}, "its ranges have 3 slots"},
		{"a bundle of a foreign drawer", "H6", saved, changeList{bundleOf("b1", "open", 1, 3, 3, origin, slotsOf("other", 1, 0, 3)), gateOf(1, "b1", origin)}, "does not have ordinal 1"},
		{"a bundle that begins with another number", "H6", saved, changeList{bundleOf("b1", "open", 2, 3, 3, origin, b1), gateOf(1, "b1", origin)}, "but that is 1"},

		{"a gate that is removed", "H7", dequeued, changeList{putDocument("bundles", "a", "gate.g", nil)}, "a gate was removed"},
		{"a generation that does not increase", "H7", dequeued, changeList{gateOf(2, "", behind)}, "its generation"},
		{"a gate that goes back", "H7", dequeued, changeList{gateOf(3, "", origin)}, "must be"},
		{"a gate that moves without a bundle", "H7", saved, changeList{gateOf(1, "", behind)}, "must be"},
		{"a gate that does not move past its bundle", "H7", opened, changeList{b1taken, gateOf(2, "", origin)}, "must be"},
		{"a gate that loses a position", "H7", dequeued, changeList{putDocument("bundles", "a", "gate.g", documentFields{"id": "gate.g", "recipient": "a", "kind": "gate", "generation": 3, "at": empty})}, "no longer has a position in cabinet"},
		{"a gate ahead of the head", "H7", nil, changeList{gateOf(1, "", placeOf(1, 1, 1, 1))}, "events were received only up to"},
		{"a closed bundle that is opened again", "H7", dequeued, changeList{b1open, gateOf(3, "b1", origin)}, "without the record of a replay"},
		{"a bundle skipped without a record", "H7", opened, changeList{bundleOf("b1", "skipped", 1, 3, 3, origin, b1), gateOf(2, "", behind)}, "without a record"},
		{"a bundle released without a record", "H7", opened, changeList{bundleOf("b1", "released", 1, 3, 3, origin, b1), gateOf(2, "", origin)}, "without a record"},
		{"a bundle closed in another way", "H7", dequeued, changeList{bundleOf("b1", "skipped", 1, 3, 3, origin, b1)}, "from dequeued to skipped"},
		{"a bundle that omits events", "H7", saved, changeList{bundleOf("b1", "open", 2, 3, 2, origin, slotsOf(first, 1, 1, 3)), gateOf(1, "b1", origin)}, "the next event is at slot 0"},
		{"a bundle that skips a drawer", "H7", saved, changeList{bundleOf("b1", "open", 4, 4, 1, origin, slotsOf(next, 2, 0, 1)), gateOf(1, "b1", origin)}, "the next event is at slot 0 of drawer 1"},
		{"a bundle of acknowledged events", "H7", dequeued, changeList{bundleOf("b2", "open", 1, 3, 3, behind, b1), gateOf(3, "b2", behind)}, "the next event is at slot 0 of drawer 2"},
		{"a bundle that knows the gate elsewhere", "H7", dequeued, changeList{bundleOf("b2", "open", 4, 4, 1, origin, slotsOf(next, 2, 0, 1)), gateOf(3, "b2", behind)}, "it records the gate at"},

		{"an intent that overfills", "H8", saved, changeList{headOf(4, 7, intentOf("i2", 5, 7, partOf(next, 2, 1, 3, 5, 7, false)), filled)}, "up to 4"},
		{"an intent that uses slots again", "H8", saved, changeList{headOf(4, 5, intentOf("i2", 5, 5, partOf(next, 2, 0, 1, 5, 5, false)), filled)}, "at slot 0"},
		{"an intent that skips an ordinal", "H8", saved, changeList{headOf(4, 5, intentOf("i2", 5, 5, partOf("d4", 4, 0, 1, 5, 5, true)), filled)}, "begins drawer 4"},
		{"an ordinal used again", "H8", cleared, changeList{headOf(4, 6, intentOf("i3", 6, 6, partOf("other", 2, 0, 1, 6, 6, true)), undone)}, "uses ordinal 2"},
		{"a drawer taken as new again", "H8", cleared, changeList{headOf(4, 6, intentOf("i3", 6, 6, partOf(next, 3, 0, 1, 6, 6, true)), undone)}, "reserves drawer"},
		{"a commit without a drawer", "H8", []changeList{reserve1, pages1, pages2}, commit1, "does not exist"},
		{"a commit without a page", "H8", []changeList{reserve1, pages1, count1}, commit1, "none of its pages begins at slot 0"},
		{"a commit without a count", "H8", append(filling[:6:6], changeList{pageOf(next, "i2", 1, 2, 5)}), changeList{headOf(5, 5, nil, cabinetState(next, 2, 2, 5, 5))}, "has 1 events"},
		{"a clear without a seal", "H8", claimed, clear2, "is not sealed at 1"},
		{"a cabinet that changes without a Save", "H8", saved, changeList{headOf(4, 4, nil, cabinetState(next, 0, 2, 4, 4))}, "but must be"},
		{"a cabinet that is removed without a sweep", "H8", saved, changeList{headOf(4, 4, nil, empty)}, "was removed"},
		{"a drawer without an intent", "H8", saved, changeList{drawerOf("other", 3, 5, 1, false, "i2")}, "no intent has reserved"},
		{"a drawer of an aborted intent", "H8", []changeList{reserve1, {headOf(0, 4, abortedIntent(save1), empty)}}, changeList{drawerOf(first, 1, 1, 3, false, "i0")}, "does not allow"},
		{"a drawer created with another count", "H8", []changeList{reserve1}, changeList{drawerOf(first, 1, 1, 2, false, "i1")}, "created with 2 events"},
		{"a count without an intent", "H8", saved, changeList{drawerOf(next, 2, 4, 2, false, "i1")}, "does not allow"},
		{"a drawer that holds too much", "H8", saved, changeList{drawerOf(first, 1, 1, 4, false, "i1")}, "more than 3"},
		{"a drawer that becomes another", "H8", saved, changeList{drawerOf(first, 1, 2, 3, false, "i1")}, "an immutable member"},
		{"a sealed drawer that takes more", "H8", sealed, changeList{drawerOf(next, 2, 4, 2, true, "i2")}, "it changed after it was sealed"},
		{"a sealed drawer that opens", "H8", sealed, changeList{drawerOf(next, 2, 4, 1, false, "i1")}, "it changed after it was sealed"},
		{"a rollback that seals a drawer with its own slots", "H8", append(claimed[:7:7], changeList{drawerOf(next, 2, 4, 1, false, "i1")}), changeList{drawerOf(next, 2, 4, 2, true, "i2")}, "it had 1 before the intent"},
		{"a last drawer that is sealed", "H8", saved, seal2, "the last drawer of the head is 2"},
		{"a page without an intent", "H8", saved, changeList{pageOf(next, "i9", 1, 2, 5)}, "has not reserved slots"},
		{"a page in no drawer", "H8", saved, changeList{pageOf("other", "i2", 1, 2, 5)}, "no intent has reserved a drawer"},
		{"a page beside its part", "H8", filling, changeList{pageOf(next, "i2", 2, 3, 5)}, "reserved 1 to 2"},
		{"pages that overlap", "H8", filling, changeList{pageOf(first, "i1", 2, 3, 3)}, "overlap"},
		{"a page written again", "H8", saved, changeList{pageOf(next, "i1", 0, 1, 4)}, "a page was written again"},

		{"a bundle of seven drawers", "H9", saved, changeList{bundleOf("b1", "open", 1, 7, 7, origin, b1, b1, b1, b1, b1, b1, b1), gateOf(1, "b1", origin)}, "spans 7 drawers"},

		{"a Dequeue without a notice", "notices", made, changeList{requestedBundle("dequeued", b1), gateOf(2, "", behind)}, "was stored"},
		{"a notice before the Dequeue", "notices", made, changeList{noticeOf("b1", 2)}, "created without the Dequeue"},
		{"a notice of a bundle that is skipped", "notices", made, changeList{requestedBundle("skipped", b1), gateOf(2, "", behind), recordOf("skip"), noticeOf("b1", 2)}, "from open to skipped"},
		{"a notice of content that no domain produces", "notices", opened, changeList{b1taken, gateOf(2, "", behind), noticeOf("b1", 2)}, "from open to dequeued"},
		{"a notice out of turn", "notices", made, changeList{requestedBundle("dequeued", b1), gateOf(2, "", behind), noticeOf("b1", 1)}, "the generation of its gate"},
		{"a notice that changes", "notices", noticed, changeList{noticeOf("b1", 3)}, "has changed"},

		{"a Dequeue with subscribers without a notice", "notices", opened, changeList{b1taken, gateWithSubscribers(2, "", behind)}, "no notice for its subscribers was stored"},
		{"a notice without subscribers", "notices", opened, changeList{b1taken, gateOf(2, "", behind), dequeueNoticeOf("b1", 2)}, "from open to dequeued"},
		{"a notice for subscribers in another commit", "notices", opened, changeList{dequeueNoticeOf("b1", 2)}, "created without the Dequeue"},

		{"a Dequeue of a watched bundle without a notice", "notices", watched, changeList{watchedBundle("dequeued", 0), gateOf(2, "", behind)}, "no notice for its watches was stored"},
		{"a notice of a bundle without watches", "notices", opened, changeList{b1taken, gateOf(2, "", behind), changeOf("b1", 2, 1)}, "from open to dequeued"},
		{"a change that is not counted", "notices", watched, changeList{watchedBundle("dequeued", 0), gateOf(2, "", behind), changeOf("b1", 2, 1)}, "it counts 0 changes, want 1"},
		{"a change with another number", "notices", watched, changeList{watchedBundle("dequeued", 1), gateOf(2, "", behind), changeOf("b1", 2, 2)}, "it has version 2"},
		{"a watched bundle that is removed without a notice", "notices", expiring, changeList{b1gone}, "no notice for its watches was stored"},
		{"a removal in another commit", "notices", expiring, changeList{removalOf("b1", 2)}, "created without the removal"},
		{"a removal with another number", "notices", expiring, changeList{b1gone, removalOf("b1", 3)}, "it has version 3"},
		{"a notice of removal of a bundle that is not removed", "notices", watched, changeList{expiringBundle("dequeued", nil), gateOf(2, "", behind), changeOf("b1", 2, 1), removalOf("b1", 2)}, "which went from open to dequeued"},
		{"a watched bundle with a time to live", "notices", watched, changeList{expiringBundle("dequeued", documentFields{"expires": 9, "ttl": 9}), gateOf(2, "", behind), changeOf("b1", 2, 1)}, "expires after 9 seconds"},
		{"a replayed bundle with a removal time", "notices", expiring, changeList{expiringBundle("open", documentFields{"expires": 9}), gateOf(3, "b1", origin), recordOf("replay")}, "it is open, but may be removed"},
		{"a removal of an open bundle", "H6", watched, changeList{b1gone, removalOf("b1", 1)}, "an open bundle was removed"},
		{"a bundle that is no longer watched", "notices", watched, changeList{b1taken, gateOf(2, "", behind)}, "its mark that it is watched was removed"},

		{"a floor that decreases", "retention", floored, changeList{headOf(4, 4, nil, filled)}, "went back from 2 to 1"},
		{"a floor above the acknowledged drawers", "retention", dequeued, changeList{headOf(4, 4, nil, filled, documentFields{cab: documentFields{"floor": 3}})}, "only the drawers below 2"},
		{"a cabinet removed above its floor", "H8", append(emptied[:13:13], changeList{headOf(4, 5, nil, undone)}), changeList{afterRemoval(2, 4)}, "was removed"},
		{"a cabinet removed without its ordinal", "H8", emptied, changeList{afterRemoval(1, 4)}, "must be 2 and 4"},
		{"a cabinet that reuses an ordinal from before its removal", "H8", removed, changeList{headAfterReuse(1)}, "after drawer 2"},
		{"a gate that loses the position in a cabinet of the head", "H7", emptied, changeList{gateWithout(5, 4)}, "no longer has a position in cabinet"},
		{"a gate that loses a position without its number", "H7", removed, changeList{gateWithout(5, 3)}, "no longer has a position in cabinet"},
		{"a gate with a removed number above the watermark", "H7", removed, changeList{gateWithout(5, 5)}, "with the watermark at 4"},
		{"a clearing above the floor", "retention", floored, changeList{headOf(4, 4, nil, filled, documentFields{cab: documentFields{"floor": 2, "cleared": 3}})}, "above its floor"},
		{"a last drawer closed under an intent", "retention", filling, changeList{headOf(4, 5, save2, undone)}, "while an intent fills it"},
		{"a drawer removed above the floor", "retention", dequeued, changeList{putDocument("cabinet", "a|"+cab, first, nil)}, "was removed"},
		{"a page removed above the floor", "retention", dequeued, changeList{putDocument("cabinet", first, "page-0", nil)}, "was removed"},
		{"a replay below the floor", "retention", floored, changeList{b1open, gateOf(5, "b1", origin), recordOf("replay")}, "below the floor 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observeHistory(t, tc.after)
			err := o.Commit(tc.wrong)
			require.ErrorContains(t, err, tc.because)
			require.ErrorContains(t, err, tc.rule+": ")
			var v *ViolationError
			require.ErrorAs(t, err, &v)
		})
	}
}

func TestObserver_RejectsUnknownContainers(t *testing.T) {
	err := observeHistory(t, saved).Commit(changeList{putDocument("deliveries", "a", "1", documentFields{"id": "1"})})
	require.ErrorContains(t, err, `containers: no checker checks the documents of this container`)
	require.ErrorContains(t, err, "document deliveries")
}

func TestViolation_ShowsBothStates(t *testing.T) {
	err := observeHistory(t, saved).Commit(changeList{headOf(3, 4, nil, filled)})
	require.ErrorContains(t, err, `"watermark":4`)
	require.ErrorContains(t, err, `"watermark":3`)
	require.ErrorContains(t, err, "catalog")
}
