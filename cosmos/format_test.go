package cosmos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// An upgradedStore is a store that both this version and a newer version have used.
type upgradedStore struct {
	*keeper
}

func newUpgradedStore(t *testing.T) *upgradedStore { return &upgradedStore{newKeeper(t, 3)} }

type storedItem = map[string]any

// readItems returns every stored document, by container, partition and id.
func (v *upgradedStore) readItems() map[string]storedItem {
	found := make(map[string]storedItem)
	for _, c := range Containers() {
		q := v.node.beginCall("test").QueryAllPartitions(v.container(c.Name), "", "SELECT * FROM c")
		for !q.IsDone() {
			items, err := q.Next(context.Background(), 1000)
			require.NoError(v, err)
			for _, item := range items {
				var doc storedItem
				require.NoError(v, json.Unmarshal(item, &doc))
				found[c.Name+" "+v.keyOf(c.Name, doc)+" "+doc["id"].(string)] = doc
			}
		}
	}
	return found
}

// readETags returns the etag of every stored document.
func (v *upgradedStore) readETags() map[string]any {
	etags := make(map[string]any)
	for name, doc := range v.readItems() {
		etags[name] = doc["_etag"]
	}
	return etags
}

func (v *upgradedStore) container(id string) *azcosmos.ContainerClient {
	container, err := v.node.db.Container(id)
	require.NoError(v, err)
	return container
}

func (v *upgradedStore) keyOf(container string, doc storedItem) string {
	if container == bundlesContainer {
		return doc["recipient"].(string)
	}
	return doc["partitionKey"].(string)
}

// added is the name of a member that a newer version adds.
const added = "addedLater"

// addMember adds a member to an object and to all objects in it.
func addMember(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if name != "groups" || value["id"] != groupsID { // a map from origins to groups, whose keys are not members
				addMember(inner)
			}
		}
		if _, ok := value[added]; !ok && !isMap(value) {
			value[added] = storedItem{"n": 1.0}
		}
	case []any:
		for _, inner := range value {
			addMember(inner)
		}
	}
}

// isMap reports whether an object is a map, whose keys are data and not names of members.
func isMap(object storedItem) bool {
	for name := range object {
		if strings.Contains(name, "|") { // the key is the name of a cabinet
			return true
		}
	}
	return len(object) == 0 || object["n"] != nil && len(object) == 1
}

// addMembers adds a member to every object in every document that this version replaces.
func (v *upgradedStore) addMembers() {
	for name, doc := range v.readItems() {
		container, _, _ := strings.Cut(name, " ")
		addMember(doc)
		text, err := json.Marshal(doc)
		require.NoError(v, err)
		id := doc["id"].(string)
		_, err = v.container(container).ReplaceItem(context.Background(), azcosmos.NewPartitionKeyString(v.keyOf(container, doc)), id, text, nil)
		require.NoError(v, err)
	}
}

// identityOf returns the members that identify an object among the objects of an array.
func identityOf(value any) string {
	object, ok := value.(map[string]any)
	if !ok {
		return ""
	}
	return fmt.Sprint(object["drawer"], object["slot"], object["from"], object["below"], object["at"])
}

// lostMembers returns the objects in before that still exist in after, but have lost the added member.
func lostMembers(path string, before, after any) []string {
	var found []string
	switch before := before.(type) {
	case map[string]any:
		after, ok := after.(map[string]any)
		if !ok {
			return nil
		}
		if before["owner"] != nil && before["id"] != after["id"] { // another intent
			return nil
		}
		if before[added] != nil && !reflect.DeepEqual(before[added], after[added]) {
			found = append(found, path)
		}
		for name, inner := range before {
			found = append(found, lostMembers(path+"/"+name, inner, after[name])...)
		}
	case []any:
		after, _ := after.([]any)
		for _, one := range before {
			for _, other := range after {
				if identityOf(one) != "" && identityOf(one) == identityOf(other) {
					found = append(found, lostMembers(path+"/"+identityOf(one), one, other)...)
				}
			}
		}
	}
	return found
}

// requireMembersKept requires that a call retains every unknown member.
func (v *upgradedStore) requireMembersKept(what string, call func() error) {
	v.Helper()
	v.addMembers()
	before := v.readItems()
	require.NoError(v, call(), what)
	after := v.readItems()
	for name := range before {
		if doc := after[name]; doc != nil {
			assert.Empty(v, lostMembers(name, before[name], doc), "%s", what)
		}
	}
}

func (v *upgradedStore) openBundle(changes ...func(*domain.Bundle)) repositorytest.PeekedBundle {
	v.Helper()
	b, err := repositorytest.Peek(context.Background(), v.stores(v.node), v.actor, allGroups, domain.BundleID{}, changes...)
	require.NoError(v, err)
	return b
}

// leaveIntent stops a node in the middle of a Save, so that its intent remains.
func (v *upgradedStore) leaveIntent() {
	d := &damagedStore{T: v.T, rig: v.rig, node: v.node, actor: v.actor}
	d.leaveIntent()
}

func TestEveryReplacedDocument_KeepsUnknownMembers(t *testing.T) {
	ctx := t.Context()
	v := newUpgradedStore(t)
	require.NoError(t, v.node.AdoptGroups(ctx))
	v.saveEvents(7)
	v.requireMembersKept("Save", func() error { v.saveEvents(4); return nil })
	v.requireMembersKept("Save by a node that has just started", func() error {
		_, err := v.rig.node(Options{DrawerCapacity: 3, Clock: v.clock}, false).Save(ctx, v.actor, repositorytest.Events(1, v.actor))
		return err
	})

	var b repositorytest.PeekedBundle
	peek := func() error { b = v.openBundle(); return nil }
	v.requireMembersKept("Peek", peek)
	v.requireMembersKept("Peek of an open bundle", peek)
	v.requireMembersKept("Release", func() error { return v.node.Release(ctx, v.actor, b.ID, becauseOfATest) })
	v.requireMembersKept("Peek", peek)
	v.requireMembersKept("Dequeue", func() error {
		_, err := v.node.Acknowledge(ctx, v.actor, b.ID)
		v.node.AwaitHints(ctx, v.actor)
		return err
	})
	v.requireMembersKept("Save of what is the first to wait", func() error { v.saveEvents(2); return nil })
	v.requireMembersKept("Dequeue of a bundle that is not open", func() error {
		_, err := v.node.Acknowledge(ctx, v.actor, repositorytest.NewBundleID())
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		return nil
	})

	request := func() error { b = v.openBundle(repositorytest.OnRequest); return nil }
	v.requireMembersKept("Peek on request", request)
	v.requireMembersKept("Fail", func() error {
		_, err := v.node.Fail(ctx, v.actor, b.ID, domain.ContentFailure{Reason: "busy", Text: "later"})
		return err
	})
	v.requireMembersKept("Answer", func() error {
		_, err := v.node.Answer(ctx, v.actor, b.ID, "payloads/x/answer", domain.Body{Length: 3})
		return err
	})
	v.requireMembersKept("Skip", func() error { return v.node.Skip(ctx, v.actor, b.ID, becauseOfATest) })
	v.requireMembersKept("Replay", func() error {
		_, err := v.node.Replay(ctx, v.actor, b.Group, becauseOfATest)
		return err
	})
	v.requireMembersKept("Freeze", func() error { return v.node.Freeze(ctx, v.actor, becauseOfATest) })
	v.requireMembersKept("Thaw", func() error { return v.node.Thaw(ctx, v.actor, becauseOfATest) })
	v.requireMembersKept("Dequeue on request", func() error {
		_, err := v.node.Acknowledge(ctx, v.actor, b.ID)
		v.node.AwaitHints(ctx, v.actor)
		return err
	})
	v.requireMembersKept("Delivered", func() error {
		notices, err := v.node.Notices(ctx, v.actor)
		if err == nil {
			err = v.node.Delivered(ctx, notices[0])
		}
		return err
	})

	v.saveEvents(5)
	v.requireMembersKept("the start of a Save that is not finished", func() error { v.leaveIntent(); return nil })
	v.requireMembersKept("the rollback of another node", func() error {
		_, err := v.rig.node(Options{DrawerCapacity: 3, Exclusive: true, Clock: v.clock}, false).Save(ctx, v.actor, repositorytest.Events(1, v.actor))
		return err
	})
	sweep := func() error { _, err := v.node.Sweep(ctx); return err }
	v.requireMembersKept("the first sweep", sweep)
	v.passTime(4 * day)
	v.saveEvents(1)
	v.takeBundle()
	v.requireMembersKept("a sweep that adds a milestone", sweep)
	v.passTime(4 * day)
	v.requireMembersKept("a sweep that raises a floor", sweep)
	v.passTime(30 * day)
	v.requireMembersKept("a sweep that removes the last drawer", sweep)
	require.True(t, v.node.isDue(ctx))
	v.passTime(day)
	v.requireMembersKept("the start of another sweep", func() error { v.node.isDue(ctx); return nil })

	group, err := domain.ParseGroup("weather")
	require.NoError(t, err)
	origin, err := domain.ParseOrigin("Weather")
	require.NoError(t, err)
	v.requireMembersKept("another origin", func() error {
		return v.rig.node(Options{Groups: domain.DefaultGroups().With(origin, group)}, false).AdoptGroups(ctx)
	})
	require.NoError(t, v.repairMailbox(v.actor))
}

func TestARepair_KeepsUnknownMembers(t *testing.T) { synctest.Test(t, requireRepairKeepsMembers) }

func requireRepairKeepsMembers(t *testing.T) {
	d := newDamagedStore(t)
	v := &upgradedStore{&keeper{T: t, rig: d.rig, node: d.node, actor: d.actor}}
	drawers, entries := d.readDrawers(d.main), catalogKey(d.actor, domain.TimeSeries)
	v.addMembers()
	require.Empty(t, d.runCheck(CheckOptions{}).Findings, "members that are not known are no finding")
	d.patchDocument(d.node.db.catalog, entries, drawers[2].ID, "/nextSequence", 2)
	d.patchDocument(d.node.db.catalog, entries, drawers[3].ID, "/nextSequence", 1000)
	d.storeWrongFilters()
	d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), drawers[0].ID, "/position", 1)
	d.leaveIntent()
	v.requireMembersKept("check --repair", func() error { return d.repairMailbox(d.actor) })
}

// newerFormat returns the lowest unknown format for a document with this id.
func newerFormat(id string) int {
	if id == headID {
		return headDocument.Format + 1
	}
	return 2 // this version knows only format 1 of all other documents
}

// raiseFormats gives documents of the mailbox a format that this version does not know.
func (v *upgradedStore) raiseFormats(isRaised func(id string) bool) {
	for name, doc := range v.readItems() {
		container, key, id := strings.Fields(name)[0], "", doc["id"].(string)
		if key = v.keyOf(container, doc); strings.HasPrefix(key, "|") || !isRaised(id) {
			continue
		}
		doc["v"] = newerFormat(id)
		if id == headID {
			doc["cabinets"] = "stored in another way"
		}
		text, err := json.Marshal(doc)
		require.NoError(v, err)
		_, err = v.container(container).ReplaceItem(context.Background(), azcosmos.NewPartitionKeyString(key), id, text, nil)
		require.NoError(v, err)
	}
}

// A mailboxCall is a named call on a mailbox.
type mailboxCall struct {
	name string
	do   func(context.Context) error
}

func (v *upgradedStore) mailboxCalls(node *Repository, b repositorytest.PeekedBundle) []mailboxCall {
	return []mailboxCall{
		{"Save", func(ctx context.Context) error {
			_, err := node.Save(ctx, v.actor, repositorytest.Events(1, v.actor))
			return err
		}},
		{"Peek", func(ctx context.Context) error {
			_, err := node.NextUnacknowledged(ctx, v.actor, allGroups)
			return err
		}},
		{"Peek of a group", func(ctx context.Context) error {
			_, err := node.NextUnacknowledged(ctx, v.actor, []domain.Group{b.Group})
			return err
		}},
		{"Find", func(ctx context.Context) error { _, _, err := node.Find(ctx, v.actor, b.ID); return err }},
		{"Dequeue", func(ctx context.Context) error { _, err := node.Acknowledge(ctx, v.actor, b.ID); return err }},
		{"Answer", func(ctx context.Context) error {
			_, err := node.Answer(ctx, v.actor, b.ID, "payloads/x/answer", domain.Body{Length: 3})
			return err
		}},
		{"Fail", func(ctx context.Context) error {
			_, err := node.Fail(ctx, v.actor, b.ID, domain.ContentFailure{Reason: "busy"})
			return err
		}},
		{"Release", func(ctx context.Context) error { return node.Release(ctx, v.actor, b.ID, becauseOfATest) }},
		{"Skip", func(ctx context.Context) error { return node.Skip(ctx, v.actor, b.ID, becauseOfATest) }},
		{"Replay", func(ctx context.Context) error {
			_, err := node.Replay(ctx, v.actor, b.Group, becauseOfATest)
			return err
		}},
		{"Freeze", func(ctx context.Context) error { return node.Freeze(ctx, v.actor, becauseOfATest) }},
		{"Thaw", func(ctx context.Context) error { return node.Thaw(ctx, v.actor, becauseOfATest) }},
		{"Inspect", func(ctx context.Context) error { _, err := node.Inspect(ctx, v.actor); return err }},
		{"Queues", func(ctx context.Context) error { _, err := node.Queues(ctx, v.actor); return err }},
		{"Sweep", func(ctx context.Context) error { _, err := node.Sweep(ctx); return err }},
	}
}

func TestAMailboxOfANewerFormat_IsNeverWritten(t *testing.T) {
	v := newUpgradedStore(t)
	v.saveEvents(7)
	v.takeBundle()
	v.saveEvents(4)
	b := v.openBundle(repositorytest.OnRequest)
	v.leaveIntent()
	v.passTime(30 * day)
	v.raiseFormats(func(id string) bool { return id == headID || strings.HasPrefix(id, gateKind) || id == b.ID.String() })
	before := v.readETags()

	var logged bytes.Buffer
	fresh := v.rig.node(Options{
		DrawerCapacity: 3, Exclusive: true, SweepEvery: -1, Clock: v.clock, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	}, true)
	for name, node := range map[string]*Repository{"that has served it before": v.node, "that has just started": fresh} {
		for _, c := range v.mailboxCalls(node, b) {
			t.Run(c.name+" by a node "+name, func(t *testing.T) {
				require.Equal(t, domain.NewerFormat, domain.KindOf(c.do(t.Context())), "%v", c.do(t.Context()))
			})
		}
		node.AwaitHints(t.Context(), v.actor)
	}
	report, err := fresh.Check(t.Context(), CheckOptions{Repair: true})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	f := report.Findings[0]
	require.Equal(t, []any{repository.NewerFormatFinding, v.actor.String(), false, false}, []any{f.Kind, f.Recipient, f.Damage, f.Repaired})
	require.Contains(t, f.Text, `document "head"`)

	require.Equal(t, before, v.readETags(), "no document was written")
	require.Equal(t, 1, strings.Count(logged.String(), "written by a newer version"), "%s", logged.String())
	mailboxes, n := fresh.NewerFormats(10)
	require.Equal(t, []string{v.actor.String()}, mailboxes)
	require.Equal(t, 1, n)
}

func TestADocumentOfANewerFormat_IsNeverWritten(t *testing.T) {
	v := newUpgradedStore(t)
	require.NoError(t, v.node.AdoptGroups(t.Context()))
	v.saveEvents(7)
	v.takeBundle()
	v.saveEvents(4)
	b := v.openBundle(repositorytest.OnRequest)
	_, err := v.node.Answer(t.Context(), v.actor, b.ID, "payloads/x/answer", domain.Body{Length: 3})
	require.NoError(t, err)
	_, err = v.node.Acknowledge(t.Context(), v.actor, b.ID)
	require.NoError(t, err)
	require.NoError(t, v.node.Freeze(t.Context(), v.actor, becauseOfATest))
	require.NoError(t, v.node.Thaw(t.Context(), v.actor, becauseOfATest))
	v.saveEvents(4)
	b = v.openBundle(repositorytest.OnRequest)
	v.leaveIntent()
	v.raiseFormats(func(string) bool { return true })
	before, documents := v.readETags(), v.readItems()
	for _, c := range v.mailboxCalls(v.node, b) {
		require.Error(t, c.do(t.Context()), c.name)
	}
	_, err = v.node.Notices(t.Context(), v.actor)
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	_, err = v.node.Records(t.Context(), v.actor, 10)
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	require.Equal(t, before, v.readETags())

	// Raise each kind separately, because some calls write a document without reading it.
	c := v.node.beginCall("test")
	for name, doc := range documents {
		id, key := doc["id"].(string), strings.Fields(name)[1]
		switch {
		case doc["ordinal"] != nil && doc["contentType"] != nil:
			err = c.writeEntries(t.Context(), key, []catalogEntry{{ID: id, PartitionKey: key, NextSequence: 1}})
		case doc["sealed"] != nil:
			_, err = c.sealDrawer(t.Context(), key, id)
		default:
			continue
		}
		require.Error(t, err, name)
	}
	require.Equal(t, before, v.readETags())
}

func TestADocumentThatIsRestored_IsServedAgain(t *testing.T) {
	v := newUpgradedStore(t)
	v.saveEvents(1)
	restored := v.readItems()
	v.raiseFormats(func(id string) bool { return id == headID })
	_, err := v.node.NextUnacknowledged(t.Context(), v.actor, allGroups)
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	for name, doc := range restored {
		if doc["id"] == headID {
			text, err := json.Marshal(doc)
			require.NoError(t, err)
			_, err = v.container(strings.Fields(name)[0]).ReplaceItem(t.Context(), azcosmos.NewPartitionKeyString(v.actor.String()), headID, text, nil)
			require.NoError(t, err)
		}
	}
	v.takeBundle()
	_, n := v.node.NewerFormats(10)
	require.Zero(t, n)
}

func TestNewerMailboxes_AreRememberedWithinABound(t *testing.T) {
	v := newUpgradedStore(t)
	for i := range 2 * client.MaxNewerSubjects {
		v.node.newer.Newer(fmt.Sprint(i), headID, domain.Errorf(domain.NewerFormat, "newer"))
	}
	names, n := v.node.NewerFormats(3)
	require.Equal(t, []string{"0", "1", "10"}, names)
	require.Equal(t, client.MaxNewerSubjects, n)
}

func TestDocumentsOfFormat1_TakeNoMoreBytes(t *testing.T) {
	for _, tc := range []struct {
		doc  any
		want string
	}{
		{
			&head{
				ID: headID, PartitionKey: "a", WriteID: headWriteID{ID: "o"}, Reserved: 2, Watermark: 1, etag: "e",
				Intent:   &intent{ID: "i", Owner: "me", First: 2, Last: 2, Parts: []drawerPart{{Cabinet: "c", Drawer: "d", Ordinal: 1, Slot: 1, Count: 1, First: 2, Last: 2}}},
				Cabinets: map[cabinetName]cabinetState{"b": {Fill: 1, Marks: []mark{{1, 2}}}, "a": {}},
			},
			`{"id":"head","partitionKey":"a","operation":"o","reserved":2,"watermark":1,"intent":{"id":"i","owner":"me","first":2,"last":2,"parts":[` +
				`{"cabinet":"c","drawer":"d","ordinal":1,"slot":1,"count":1,"first":2,"last":2}]},"cabinets":{` +
				`"a":{"fill":0,"ordinal":0,"sequence":0,"total":0},"b":{"fill":1,"ordinal":0,"sequence":0,"total":0,"marks":[[1,2]]}}}`,
		},
		{
			&gate{ID: "gate.x", Recipient: "a", Kind: gateKind, At: map[cabinetName]position{"c": {Ordinal: 1}}},
			`{"id":"gate.x","recipient":"a","kind":"gate","operation":"","generation":0,"at":{"c":{"ordinal":1,"slot":0,"sequence":0,"total":0}}}`,
		},
		{
			&bundleDoc{ID: "b", Weight: 1, Format: "json", Ranges: []slotRange{{Drawer: "d", To: 1}}, ContentFailure: &contentFailureDoc{Text: "<"}},
			`{"id":"b","recipient":"","kind":"","operation":"","state":"","group":"","cabinet":"","count":0,"weight":"1","first":0,"last":0,` +
				`"documentTypes":null,"content":"","format":"json","version":"","opened":"0001-01-01T00:00:00Z",` +
				`"ranges":[{"drawer":"d","ordinal":0,"from":0,"to":1}],"start":{"ordinal":0,"slot":0,"sequence":0,"total":0},` +
				`"trouble":{"failures":0,"reason":"","text":"\u003c","call":""}}`,
		},
		{&drawerPage{ID: "p", Events: packed{1, 2}}, `{"id":"p","partitionKey":"","intent":"","slot":0,"until":0,"firstSequence":0,"events":"AQI="}`},
		{&filterDoc{ID: "f", Filter: []byte{1}}, `{"id":"f","partitionKey":"","count":0,"filter":"AQ=="}`},
		{
			&blockFilterDoc{ID: "f", Until: 2, Drawer: "d", Count: 3, Sealed: true, Fingerprints: packed{1, 2}},
			`{"id":"f","partitionKey":"","until":2,"drawer":"d","count":3,"sealed":true,"fingerprints":"AQI="}`,
		},
	} {
		require.Equal(t, tc.want, string(client.Encode(tc.doc)))
	}
}

func TestMembersThatDifferInCase_AreKept(t *testing.T) {
	var g gate
	v := newUpgradedStore(t)
	text := `{"id":"gate.x","recipient":"a","kind":"gate","operation":"","generation":1,"at":{},"Generation":7,"_ts":1,"_etag":"e"}`
	require.NoError(t, v.node.beginCall("test").Decode([]byte(text), "a", &g))
	require.EqualValues(t, 1, g.Generation)
	require.JSONEq(t, strings.Replace(text, `,"_ts":1,"_etag":"e"`, "", 1), string(client.Encode(g.clone())))
}

func TestDocumentsOfAllRecipientsInANewerFormat_AreNotWritten(t *testing.T) {
	v := newUpgradedStore(t)
	require.NoError(t, v.node.AdoptGroups(t.Context()))
	require.True(t, v.node.isDue(t.Context()))
	for name, doc := range v.readItems() {
		doc["v"] = newerFormat(doc["id"].(string))
		text, err := json.Marshal(doc)
		require.NoError(t, err)
		key := doc["partitionKey"].(string)
		_, err = v.container(strings.Fields(name)[0]).ReplaceItem(t.Context(), azcosmos.NewPartitionKeyString(key), doc["id"].(string), text, nil)
		require.NoError(t, err)
	}
	before := v.readETags()
	require.Len(t, before, 2)
	v.passTime(day)
	require.Equal(t, domain.NewerFormat, domain.KindOf(v.node.AdoptGroups(t.Context())))
	require.False(t, v.node.isDue(t.Context()))
	require.Equal(t, before, v.readETags())
	names, _ := v.node.NewerFormats(10)
	require.Equal(t, []string{groupsKey, sweepKey}, names)
}
