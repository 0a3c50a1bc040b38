package explorer

// partyOf returns a party that calls the given functions one after the other.
func partyOf(name string, some ...func(*Member)) Party {
	return Party{Name: name, Run: func(m *Member) {
		for _, one := range some {
			one(m)
		}
	}}
}

// prepareWith returns a preparation that calls the given functions one after the other.
func prepareWith(some ...func(*Member)) func(*Member) { return partyOf("", some...).Run }

func putter() Party { return partyOf("put", (*Member).Put) }

func watcher(name string) Party { return partyOf(name, (*Member).Watch) }

// watchScenarios returns the scenarios of watches and documents of clients.
func watchScenarios() []*Scenario {
	put, watched := (*Member).Put, prepareWith((*Member).Put, (*Member).Watch)
	putAndPublish := []func(*Member){put, (*Member).Publish}
	return []*Scenario{
		{
			Name: "watch-put", Quick: true, Text: "a document is watched for the first time while it is changed; a crash, a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: prepareWith(put),
			Parties: []Party{watcher("watch"), putter()},
		},
		{
			Name: "watch-put-stale", Quick: true, Text: "the same on a Session account, a stale read",
			Watches: true, Session: true, Stale: 1, Behind: 2, Prepare: prepareWith(put),
			Parties: []Party{watcher("watch"), putter()},
		},
		{
			Name: "watch-delete", Quick: true, Text: "a document is watched for the first time while it is deleted; a crash, a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: prepareWith(put),
			Parties: []Party{watcher("watch"), partyOf("delete", (*Member).Delete)},
		},
		{
			Name: "watch-then-put", Quick: true, Text: "a document is changed when its watch is answered; a lost reply, a stale read",
			Watches: true, Session: true, Lost: 1, Stale: 1, Behind: 3, Prepare: prepareWith(put),
			Parties: []Party{watcher("watch"), partyOf("put", putAndPublish...).startAfter(1)},
		},
		{
			Name: "put-then-watch", Quick: true, Text: "a document is watched when its change is answered; a lost reply, a stale read",
			Watches: true, Session: true, Lost: 1, Stale: 1, Behind: 3, Prepare: watched,
			Parties: []Party{putter(), watcher("watch").startAfter(1)},
		},
		{
			Name: "watch-watch-put", Text: "two watch a document for the first time while it is changed; a crash",
			Watches: true, Crashes: 1, Prepare: prepareWith(put),
			Parties: []Party{watcher("watch a"), watcher("watch b"), putter()},
		},
		{
			Name: "unwatch-put-serve", Quick: true, Text: "a watch is deleted while its document is changed and its cursor served; a crash",
			Watches: true, Crashes: 1, Prepare: watched,
			Parties: []Party{partyOf("unwatch", (*Member).Unwatch), partyOf("put", putAndPublish...), partyOf("serve", (*Member).Serve)},
		},
		{
			Name: "unwatch-serve-lost", Text: "a watch is deleted while two nodes serve its cursor; a lost reply",
			Watches: true, Lost: 1, Prepare: prepareWith(watched, put, (*Member).Publish),
			Parties: []Party{partyOf("unwatch", (*Member).Unwatch), partyOf("serve a", (*Member).Serve), partyOf("serve b", (*Member).Serve)},
		},
		{
			Name: "put-publish-put", Quick: true, Text: "a process changes a watched document and publishes, another changes it",
			Watches: true, Prepare: watched,
			Parties: []Party{partyOf("put and publish", putAndPublish...), putter()},
		},
		{
			Name: "put-put-publish", Text: "two processes change a watched document, and each publishes; a crash",
			Watches: true, Crashes: 1, Prepare: watched,
			Parties: []Party{partyOf("put a", putAndPublish...), partyOf("put b", putAndPublish...)},
		},
		{
			Name: "put-put-publish-lost", Text: "the same with a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: watched,
			Parties: []Party{partyOf("put a", putAndPublish...), partyOf("put b", putAndPublish...)},
		},
		{
			Name: "watch-object", Quick: true, Text: "an object is watched for the first time while an event changes it; a crash, a lost reply",
			Watches: true, Objects: true, Crashes: 1, Lost: 1, Prepare: prepareWith(reportKey("[C@10]")),
			Parties: []Party{watcher("watch"), partyOf("event", reportKey("[C@20]"))},
		},
		{
			Name: "watch-object-stale", Quick: true, Text: "the same on a Session account, a stale read",
			Watches: true, Objects: true, Session: true, Stale: 1, Behind: 2, Prepare: prepareWith(reportKey("[C@10]")),
			Parties: []Party{watcher("watch"), partyOf("event", reportKey("[C@20]"))},
		},
		{
			Name: "watch-object-delete", Quick: true, Text: "an object is watched for the first time while an event deletes it; a crash",
			Watches: true, Objects: true, Crashes: 1, Prepare: prepareWith(reportKey("[C@10]")),
			Parties: []Party{watcher("watch"), partyOf("event", reportKey("[D@20]"))},
		},
		{
			Name: "watch-object-publish", Quick: true, Text: "an event changes an object when its watch is answered, and its node publishes; a lost reply, a stale read",
			Watches: true, Objects: true, Session: true, Lost: 1, Stale: 1, Behind: 3, Prepare: prepareWith(reportKey("[C@10]")),
			Parties: []Party{watcher("watch"), partyOf("event", reportKey("[C@20]"), (*Member).Publish).startAfter(1)},
		},
		{
			Name: "watch-object-events", Text: "two events change a watched object, and their nodes publish; a crash, a lost reply",
			Watches: true, Objects: true, Crashes: 1, Lost: 1, Prepare: prepareWith(reportKey("[C@10]"), (*Member).Watch),
			Parties: []Party{partyOf("a", reportKey("[C@20]"), (*Member).Publish), partyOf("b", reportKey("[C@30]"), (*Member).Publish)},
		},
		{
			Name: "publish-publish", Quick: true, Text: "two processes publish two changes of a document",
			Watches: true, Prepare: prepareWith(watched, put, put),
			Parties: []Party{partyOf("publish a", (*Member).Publish), partyOf("publish b", (*Member).Publish)},
		},
		{
			Name: "publish-publish-lost", Text: "the same with a crash and a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: prepareWith(watched, put, put),
			Parties: []Party{partyOf("publish a", (*Member).Publish), partyOf("publish b", (*Member).Publish)},
		},
		{
			Name: "publish-publish-stale", Text: "the same on a Session account, two stale reads",
			Watches: true, Session: true, Stale: 2, Behind: 2, Prepare: prepareWith(watched, put, put),
			Parties: []Party{partyOf("publish a", (*Member).Publish), partyOf("publish b", (*Member).Publish)},
		},
	}
}
