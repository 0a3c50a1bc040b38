package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

type listedQueues struct {
	SurveyedAt string
	Matching   int
	Next       string
	Queues     []struct {
		Recipient, State string
		Waiting          int64
		AgeSeconds       *int64
		LastDequeue      string
		Groups           []struct {
			Group string
			Open  *struct{ BundleID string }
		}
	}
}

// list requests a page of the list of all mailboxes.
func (f *hubFixture) list(query string) listedQueues {
	f.t.Helper()
	var found listedQueues
	require.NoError(f.t, json.Unmarshal([]byte(f.do("GET", "/v1/admin/queues"+query, "", "Authorization", "Bearer "+token).wants(200).body), &found))
	return found
}

func TestListOfQueues_ShowsTheWaitingEventsOfEachActor(t *testing.T) {
	f := serve(t)
	for i := range 3 {
		recipient := fmt.Sprintf("actor-%d", i)
		for j := range i + 1 {
			f.do("POST", "/v1/data-available", array(newEvent(100*i+j, "recipient", recipient))).wants(202)
		}
	}
	require.Equal(t, 3, f.list("").Matching)
	f.do("GET", "/v1/peek?bundleId="+id(1), "", "X-Actor-Id", "actor-1").wants(200)
	open := f.list("?state=open")
	require.Len(t, open.Queues, 1)
	require.Equal(t, "actor-1", open.Queues[0].Recipient)
	require.EqualValues(t, 2, open.Queues[0].Waiting)
	require.Equal(t, id(1), open.Queues[0].Groups[0].Open.BundleID)
	f.do("DELETE", "/v1/dequeue/"+id(1), "", "X-Actor-Id", "actor-1").wants(200)
	empty := f.list("?state=empty")
	require.Len(t, empty.Queues, 1)
	require.NotEmpty(t, empty.Queues[0].LastDequeue)

	var names []string
	for query := "?sort=events&size=1"; ; {
		page := f.list(query)
		require.NotEmpty(t, page.SurveyedAt)
		require.Len(t, page.Queues, 1)
		names = append(names, page.Queues[0].Recipient)
		if page.Next == "" {
			break
		}
		query = "?sort=events&size=1&after=" + url.QueryEscape(page.Next)
	}
	require.Equal(t, []string{"actor-2", "actor-0", "actor-1"}, names)
}

func TestListOfQueues_RefusesUnknownParameters(t *testing.T) {
	f := serve(t)
	for _, query := range []string{"state=asleep", "sort=name", "size=0", "size=1001", "size=x", "after=%3Cscript%3E", "page=2", "state=open&state=open"} {
		f.do("GET", "/v1/admin/queues?"+query, "", "Authorization", "Bearer "+token).problem(400, "invalid")
	}
}
