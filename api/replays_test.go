package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

const replayRange = `"from":"2030-01-01T11:00:00Z","to":"2030-01-01T13:00:00Z"`

func TestADelivery_IsReplayedOnceItHasEnded(t *testing.T) {
	p, with := withDeliveries(t)
	f := serve(t, with)
	f.do("PUT", subscriptions+"/"+id(7), `{"callback_url":"https://example.org/"}`).wants(201)
	p.publishMessages(3)
	p.deliver(id(7), domain.Answer{Status: 200}, domain.Answer{Status: 500})
	one := func(n string) string { return deliveries + "/" + id(7) + ".0." + n + "/replay" }
	require.JSONEq(t, `{"id":"`+id(7)+`.0.0"}`, f.do("POST", one("0"), "").wants(202).body)
	f.do("POST", one("0"), "").problem(409, "conflict") // a replay of this delivery was already requested
	f.do("POST", one("1"), "").problem(409, "conflict") // this delivery waits for its next attempt
	f.do("POST", one("2"), "").problem(409, "conflict") // this delivery has not been attempted yet
	f.do("POST", one("3"), "").problem(404, "not-found")
	f.do("POST", one("0"), "", "X-Actor-Id", "another").problem(404, "not-found")
	f.do("POST", one("0"), "", "X-Actor-Id", "").problem(401, "missing-actor")
	f.do("POST", deliveries+"/x/replay", "").problem(400, "invalid")
	f.do("POST", one("0")+"?x=1", "").problem(400, "invalid")
	serve(t).do("POST", one("0"), "").problem(503, "not-provisioned")
}

func TestAReplay_IsStartedShownAndStopped(t *testing.T) {
	p, with := withDeliveries(t)
	f := serve(t, with)
	path := subscriptions + "/" + id(7)
	f.do("PUT", path, `{"callback_url":"https://example.org/"}`).wants(201)
	p.publishMessages(3)
	p.deliver(id(7), domain.Answer{Status: 200}, domain.Answer{Status: 500})
	require.JSONEq(t, `{"matched":1,"seen":2,"complete":true}`, f.do("POST", path+"/replays", `{`+replayRange+`,"of":"all","dryRun":true}`).wants(200).body)
	require.JSONEq(t, `{"matched":0,"seen":2,"complete":true}`, f.do("POST", path+"/replays", `{`+replayRange+`,"of":"all","filter":"type == 'x'","dryRun":true}`).wants(200).body)
	require.JSONEq(t, `{"matched":0,"seen":0,"complete":true}`, f.do("POST", path+"/replays", `{`+replayRange+`,"dryRun":true}`).wants(200).body)

	a := f.do("POST", path+"/replays", `{`+replayRange+`,"of":"all"}`).wants(202)
	started := decoded(t, a.body)
	require.Equal(t, "requested", started["state"])
	require.EqualValues(t, domain.DefaultReplayRate, started["rate"])
	at := a.header.Get("Location")
	require.Equal(t, path+"/replays/"+started["id"].(string), at)
	require.Equal(t, started, decoded(t, f.do("GET", at, "").wants(200).body))
	f.do("POST", path+"/replays", `{`+replayRange+`}`).problem(409, "conflict")
	f.do("GET", at, "", "X-Actor-Id", "another").problem(404, "not-found")
	f.do("GET", path+"/replays/other", "").problem(404, "not-found")
	f.do("DELETE", path+"/replays/other", "").problem(404, "not-found")
	f.do("DELETE", at, "").wants(204)
}

func TestABadReplay_IsNamedByItsPointer(t *testing.T) {
	_, with := withDeliveries(t)
	f := serve(t, with)
	path := subscriptions + "/" + id(7) + "/replays"
	f.do("PUT", subscriptions+"/"+id(7), `{"callback_url":"https://example.org/"}`).wants(201)
	for body, pointer := range map[string]string{
		`{}`:                                     "/from",
		`{"from":"2030-01-01T11:00:00Z"}`:        "/to",
		`{"from":1,"to":"2030-01-01T11:00:00Z"}`: "/from",
		`{"from":"2030-01-01T11:00:00Z","to":"2030-01-01T11:00:00Z"}`: "/to",
		`{` + replayRange + `,"rate":0}`:                              "/rate",
		`{` + replayRange + `,"rate":1001}`:                           "/rate",
		`{` + replayRange + `,"rate":"x"}`:                            "/rate",
		`{` + replayRange + `,"of":"some"}`:                           "/of",
		`{` + replayRange + `,"dryRun":null}`:                         "/dryRun",
		`{` + replayRange + `,"filter":"a["}`:                         "/filter",
		`{` + replayRange + `,"other":1}`:                             "/other",
	} {
		a := f.do("POST", path, body)
		a.problem(400, "invalid")
		require.Contains(t, a.body, `"pointer":"`+pointer+`"`, body)
	}
	f.do("POST", path, `x`).problem(400, "not-json")
	serve(t).do("POST", path, `{`+replayRange+`}`).problem(503, "not-provisioned")
}
