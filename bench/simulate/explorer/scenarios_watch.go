package explorer

// does is a party that does some things, one after the other.
func does(name string, some ...func(*Member)) Party {
	return Party{Name: name, Does: func(m *Member) {
		for _, one := range some {
			one(m)
		}
	}}
}

// prepare prepares a scenario by what a member does.
func prepare(some ...func(*Member)) func(*Member) { return does("", some...).Does }

func puts() Party { return does("put", (*Member).Puts) }

func watches(name string) Party { return does(name, (*Member).Watches) }

// watchScenarios returns those of watches and documents of clients.
func watchScenarios() []*Scenario {
	put, watched := (*Member).Puts, prepare((*Member).Puts, (*Member).Watches)
	putAndPublish := []func(*Member){put, (*Member).Publishes}
	return []*Scenario{
		{
			Name: "watch-put", Quick: true, Text: "a document is watched for the first time while it is changed; a crash, a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: prepare(put),
			Parties: []Party{watches("watch"), puts()},
		},
		{
			Name: "watch-put-stale", Quick: true, Text: "the same on a Session account, a stale read",
			Watches: true, Session: true, Stale: 1, Behind: 2, Prepare: prepare(put),
			Parties: []Party{watches("watch"), puts()},
		},
		{
			Name: "watch-delete", Quick: true, Text: "a document is watched for the first time while it is deleted; a crash, a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: prepare(put),
			Parties: []Party{watches("watch"), does("delete", (*Member).Deletes)},
		},
		{
			Name: "watch-then-put", Quick: true, Text: "a document is changed when its watch is answered; a lost reply, a stale read",
			Watches: true, Session: true, Lost: 1, Stale: 1, Behind: 3, Prepare: prepare(put),
			Parties: []Party{watches("watch"), does("put", putAndPublish...).startingAfter(1)},
		},
		{
			Name: "put-then-watch", Quick: true, Text: "a document is watched when its change is answered; a lost reply, a stale read",
			Watches: true, Session: true, Lost: 1, Stale: 1, Behind: 3, Prepare: watched,
			Parties: []Party{puts(), watches("watch").startingAfter(1)},
		},
		{
			Name: "watch-watch-put", Text: "two watch a document for the first time while it is changed; a crash",
			Watches: true, Crashes: 1, Prepare: prepare(put),
			Parties: []Party{watches("watch a"), watches("watch b"), puts()},
		},
		{
			Name: "unwatch-put-serve", Quick: true, Text: "a watch is deleted while its document is changed and its cursor served; a crash",
			Watches: true, Crashes: 1, Prepare: watched,
			Parties: []Party{does("unwatch", (*Member).Unwatches), does("put", putAndPublish...), does("serve", (*Member).Serves)},
		},
		{
			Name: "unwatch-serve-lost", Text: "a watch is deleted while two nodes serve its cursor; a lost reply",
			Watches: true, Lost: 1, Prepare: prepare(watched, put, (*Member).Publishes),
			Parties: []Party{does("unwatch", (*Member).Unwatches), does("serve a", (*Member).Serves), does("serve b", (*Member).Serves)},
		},
		{
			Name: "put-publish-put", Quick: true, Text: "a process changes a watched document and publishes, another changes it",
			Watches: true, Prepare: watched,
			Parties: []Party{does("put and publish", putAndPublish...), puts()},
		},
		{
			Name: "put-put-publish", Text: "two processes change a watched document, and each publishes; a crash",
			Watches: true, Crashes: 1, Prepare: watched,
			Parties: []Party{does("put a", putAndPublish...), does("put b", putAndPublish...)},
		},
		{
			Name: "put-put-publish-lost", Text: "the same with a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: watched,
			Parties: []Party{does("put a", putAndPublish...), does("put b", putAndPublish...)},
		},
		{
			Name: "watch-object", Quick: true, Text: "an object is watched for the first time while an event changes it; a crash, a lost reply",
			Watches: true, Objects: true, Crashes: 1, Lost: 1, Prepare: prepare(reportsKey("[C@10]")),
			Parties: []Party{watches("watch"), does("event", reportsKey("[C@20]"))},
		},
		{
			Name: "watch-object-stale", Quick: true, Text: "the same on a Session account, a stale read",
			Watches: true, Objects: true, Session: true, Stale: 1, Behind: 2, Prepare: prepare(reportsKey("[C@10]")),
			Parties: []Party{watches("watch"), does("event", reportsKey("[C@20]"))},
		},
		{
			Name: "watch-object-delete", Quick: true, Text: "an object is watched for the first time while an event deletes it; a crash",
			Watches: true, Objects: true, Crashes: 1, Prepare: prepare(reportsKey("[C@10]")),
			Parties: []Party{watches("watch"), does("event", reportsKey("[D@20]"))},
		},
		{
			Name: "watch-object-publish", Quick: true, Text: "an event changes an object when its watch is answered, and its node publishes; a lost reply, a stale read",
			Watches: true, Objects: true, Session: true, Lost: 1, Stale: 1, Behind: 3, Prepare: prepare(reportsKey("[C@10]")),
			Parties: []Party{watches("watch"), does("event", reportsKey("[C@20]"), (*Member).Publishes).startingAfter(1)},
		},
		{
			Name: "watch-object-events", Text: "two events change a watched object, and their nodes publish; a crash, a lost reply",
			Watches: true, Objects: true, Crashes: 1, Lost: 1, Prepare: prepare(reportsKey("[C@10]"), (*Member).Watches),
			Parties: []Party{does("a", reportsKey("[C@20]"), (*Member).Publishes), does("b", reportsKey("[C@30]"), (*Member).Publishes)},
		},
		{
			Name: "publish-publish", Quick: true, Text: "two processes publish two changes of a document",
			Watches: true, Prepare: prepare(watched, put, put),
			Parties: []Party{does("publish a", (*Member).Publishes), does("publish b", (*Member).Publishes)},
		},
		{
			Name: "publish-publish-lost", Text: "the same with a crash and a lost reply",
			Watches: true, Crashes: 1, Lost: 1, Prepare: prepare(watched, put, put),
			Parties: []Party{does("publish a", (*Member).Publishes), does("publish b", (*Member).Publishes)},
		},
		{
			Name: "publish-publish-stale", Text: "the same on a Session account, two stale reads",
			Watches: true, Session: true, Stale: 2, Behind: 2, Prepare: prepare(watched, put, put),
			Parties: []Party{does("publish a", (*Member).Publishes), does("publish b", (*Member).Publishes)},
		},
	}
}
