package embedded_test

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

func requireStatus(t *testing.T, want int, err error) {
	t.Helper()
	var refused *azcore.ResponseError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, want, refused.StatusCode, "%v", err)
}

func TestUpdateQueue_ChangesOnlyTheGivenSettings(t *testing.T) {
	c := newAdminClient(t, openNamespace(t, embedded.Options{Entities: queues("target")}))
	_, err := c.CreateQueue(t.Context(), "q", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		RequiresDuplicateDetection: to.Ptr(true), DuplicateDetectionHistoryTimeWindow: to.Ptr("PT3M"), ForwardTo: to.Ptr("https://example.com/target"),
		DefaultMessageTimeToLive: to.Ptr("P7D"), UserMetadata: to.Ptr("mine"),
	}})
	require.NoError(t, err)
	_, err = c.UpdateQueue(t.Context(), "q", admin.QueueProperties{LockDuration: to.Ptr("PT2M")}, nil)
	require.NoError(t, err)
	q, err := c.GetQueue(t.Context(), "q", nil)
	require.NoError(t, err)
	require.Equal(t, "PT2M", *q.LockDuration)
	require.Equal(t, "PT3M", *q.DuplicateDetectionHistoryTimeWindow)
	require.True(t, *q.RequiresDuplicateDetection)
	require.Equal(t, "P7D", *q.DefaultMessageTimeToLive)
	require.Equal(t, "https://example.com/target", *q.ForwardTo)
	require.Equal(t, "mine", *q.UserMetadata)

	_, err = c.UpdateQueue(t.Context(), "q", admin.QueueProperties{RequiresSession: to.Ptr(true)}, nil)
	requireStatus(t, http.StatusBadRequest, err)
	_, err = c.UpdateQueue(t.Context(), "q", admin.QueueProperties{LockDuration: to.Ptr("soon")}, nil)
	requireStatus(t, http.StatusBadRequest, err)
	_, err = c.UpdateQueue(t.Context(), "none", admin.QueueProperties{}, nil)
	requireStatus(t, http.StatusNotFound, err)
	_, err = c.DeleteQueue(t.Context(), "none", nil)
	requireStatus(t, http.StatusNotFound, err)
	info, err := c.GetNamespaceProperties(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "example", info.Name)
}

func TestRules_AreReturnedAsTheyWereCreated(t *testing.T) {
	c := newAdminClient(t, openNamespace(t, embedded.Options{}))
	_, err := c.CreateTopic(t.Context(), "t", nil)
	require.NoError(t, err)
	_, err = c.CreateSubscription(t.Context(), "t", "s", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		DefaultRule: &admin.RuleProperties{Name: "first", Filter: &admin.FalseFilter{}},
	}})
	require.NoError(t, err)
	want := []admin.RuleProperties{
		{Name: "first", Filter: &admin.FalseFilter{}},
		{Name: "all", Filter: &admin.TrueFilter{}, Action: &admin.SQLAction{Expression: "SET n = @n", Parameters: map[string]any{"@n": int64(5)}}},
		{Name: "match", Filter: &admin.CorrelationFilter{Subject: to.Ptr("s"), ApplicationProperties: map[string]any{"a": "x", "b": true, "c": 1.5, "d": int64(2)}}},
	}
	for _, rule := range want[1:] {
		_, err := c.CreateRule(t.Context(), "t", "s", &admin.CreateRuleOptions{Name: &rule.Name, Filter: rule.Filter, Action: rule.Action})
		require.NoError(t, err)
	}
	page, err := c.NewListRulesPager("t", "s", nil).NextPage(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, want, page.Rules)
	want[0].Filter = &admin.SQLFilter{Expression: "n > 1"}
	_, err = c.UpdateRule(t.Context(), "t", "s", want[0])
	require.NoError(t, err)
	rule, err := c.GetRule(t.Context(), "t", "s", "first", nil)
	require.NoError(t, err)
	require.Equal(t, want[0], rule.RuleProperties)
	_, err = c.CreateRule(t.Context(), "t", "s", &admin.CreateRuleOptions{Name: to.Ptr("bad"), Filter: &admin.SQLFilter{Expression: "n >"}})
	requireStatus(t, http.StatusBadRequest, err)
	running, err := c.GetTopicRuntimeProperties(t.Context(), "t", nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, running.SubscriptionCount)
	require.EqualValues(t, 1, running.CorrelationFilterCount)
	_, err = c.DeleteRule(t.Context(), "t", "s", "match", nil)
	require.NoError(t, err)
	none, err := c.GetRule(t.Context(), "t", "s", "match", nil)
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestEntities_AreListedInPages(t *testing.T) {
	c := newAdminClient(t, openNamespace(t, embedded.Options{Entities: queues("a", "b", "c", "d", "e")}))
	var names []string
	for pager := c.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: 2}); pager.More(); {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		for _, q := range page.Queues {
			names = append(names, q.QueueName)
		}
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, names)
}
