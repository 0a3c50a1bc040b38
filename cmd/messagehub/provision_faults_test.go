package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// changeQueue deletes a queue, and creates it again with changed properties.
func (d *azureAccounts) changeQueue(name string, change func(*admin.QueueProperties)) {
	d.Helper()
	found, err := d.bus.GetQueue(d.Context(), name, nil)
	require.NoError(d, err)
	change(&found.QueueProperties)
	_, err = d.bus.DeleteQueue(d.Context(), name, nil)
	require.NoError(d, err)
	_, err = d.bus.CreateQueue(d.Context(), name, &admin.CreateQueueOptions{Properties: &found.QueueProperties})
	require.NoError(d, err)
}

// createContainer creates a container, and its database if necessary.
func (d *azureAccounts) createContainer(database string, properties azcosmos.ContainerProperties) {
	d.Helper()
	_, _ = d.cosmos.CreateDatabase(d.Context(), azcosmos.DatabaseProperties{ID: database}, nil) // fails only if the database already exists
	db, err := d.cosmos.NewDatabase(database)
	require.NoError(d, err)
	_, err = db.CreateContainer(d.Context(), properties, nil)
	require.NoError(d, err)
}

func TestProvision_DiffPrintsALineForEachDifference(t *testing.T) {
	d := newAccounts(t)
	require.Equal(t, 1+6+2+18, strings.Count(d.provision(1, "--diff"), "missing   "))
	d.provision(0, "--apply")
	require.Empty(t, d.provision(0, "--diff"))
	for _, tc := range []struct {
		name     string
		change   func()
		want     string // expected output of --diff
		check    int    // expected exit status of --check
		lastArgs []string
	}{
		{"a container with more index paths", func() {
			d.change("cabinet", func(p *azcosmos.ContainerProperties) {
				p.IndexingPolicy.IncludedPaths = append(p.IndexingPolicy.IncludedPaths, azcosmos.IncludedPath{Path: "/weight/?"})
			})
		}, "differs   cosmos container cabinet: its indexing policy also indexes /weight/?", 0, []string{"--narrow-index"}},
		{"a container with fewer index paths", func() {
			d.change("cabinet", func(p *azcosmos.ContainerProperties) {
				p.IndexingPolicy.IncludedPaths = p.IndexingPolicy.IncludedPaths[:2]
			})
		}, "differs   cosmos container cabinet: its indexing policy does not index /until/?", 1, nil},
		{"a container without TTL", func() {
			d.change("streams", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
		}, "differs   cosmos container streams: its default TTL is not set", 1, nil},
		{"a container that deletes what it holds", func() {
			d.change("catalog", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = to.Ptr[int32](3600) })
		}, "differs   cosmos container catalog: its default TTL is 3600", 1, nil},
		{"a queue whose messages expire", func() {
			d.changeQueue("dataavailable", func(p *admin.QueueProperties) { p.DefaultMessageTimeToLive = to.Ptr("P14D") })
		}, "differs   servicebus queue dataavailable: default time to live P14D, want none: what is not received by then", 0, nil},
		{"a queue that loses expired messages", func() {
			d.changeQueue("object-events", func(p *admin.QueueProperties) { p.DeadLetteringOnMessageExpiration = to.Ptr(false) })
		}, "differs   servicebus queue object-events: dead letters of expired messages false, want true: ", 0, nil},
		{"a queue with another lock", func() {
			d.changeQueue("charges", func(p *admin.QueueProperties) { p.LockDuration = to.Ptr("PT5S") })
		}, "differs   servicebus queue charges: lock duration PT5S, want PT1M\n", 0, nil},
		{"a queue with another number of deliveries", func() {
			d.changeQueue("charges-reply", func(p *admin.QueueProperties) { p.MaxDeliveryCount = to.Ptr[int32](1) })
		}, "differs   servicebus queue charges-reply: max delivery count 1, want 10\n", 0, nil},
		{"a queue whose answers stay", func() {
			d.changeQueue("charges-reply", func(p *admin.QueueProperties) { p.DefaultMessageTimeToLive = to.Ptr(deployment.Forever) })
		}, "differs   servicebus queue charges-reply: default time to live none, want PT10M: ", 0, nil},
		{"a queue that is smaller", func() {
			d.changeQueue("dataavailable-fifo", func(p *admin.QueueProperties) { p.MaxSizeInMegabytes = to.Ptr[int32](1024) })
		}, "differs   servicebus queue dataavailable-fifo: maximum size in MB 1024, want 5120: ", 0, nil},
		{"a queue that is missing", func() {
			_, err := d.bus.DeleteQueue(t.Context(), "charges-dequeue", nil)
			require.NoError(t, err)
		}, "missing   servicebus queue charges-dequeue\n", 1, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.change()
			got := d.provision(1, "--diff")
			require.True(t, strings.HasPrefix(got, tc.want), got)
			require.Equal(t, 1, strings.Count(got, "\n"), got)
			d.provision(tc.check, "--check")
			require.Contains(t, d.provision(0, tc.lastArgs...), map[bool]string{true: "created", false: "changed:"}[strings.HasPrefix(tc.want, "missing")])
			require.Empty(t, d.provision(0, "--diff"))
		})
	}
}

func TestProvision_KeepsAQueueThatIsLarger(t *testing.T) {
	d := newAccounts(t)
	d.provision(0)
	d.changeQueue("dataavailable", func(p *admin.QueueProperties) { p.MaxSizeInMegabytes = to.Ptr[int32](81920) })
	require.Empty(t, d.provision(0, "--diff"))
}

func TestProvision_DiffPrintsQueuesOfAnEarlierConfiguration(t *testing.T) {
	d := newAccounts(t)
	d.setEnviron("MESSAGEHUB_DOMAINS=[{name: Billing, ingest-queue: billing/events}]")
	d.provision(0)
	d.setEnviron("MESSAGEHUB_DOMAINS=[]")
	var want strings.Builder
	for _, name := range []string{"billing", "billing-dequeue", "billing-reply", "billing/events"} {
		want.WriteString("extra     servicebus queue " + name + "\n")
	}
	require.Equal(t, want.String(), d.provision(0, "--diff"))
	require.NotContains(t, d.provision(0, "--check"), "extra")
}

func TestProvision_RefusesAQueueWithOtherSessions(t *testing.T) {
	d := newAccounts(t)
	d.provision(0)
	d.changeQueue("dataavailable-fifo", func(p *admin.QueueProperties) { p.RequiresSession = to.Ptr(false) })
	d.changeQueue("dataavailable", func(p *admin.QueueProperties) { p.RequiresSession = to.Ptr(true) })
	for _, args := range [][]string{{"--check"}, {"--apply"}} {
		got := d.provision(1, args...)
		require.Contains(t, got, "queue dataavailable-fifo is without sessions, want one with sessions; this cannot be changed")
		require.Contains(t, got, "queue dataavailable is with sessions, want one without sessions")
		require.Contains(t, got, "\n  az servicebus queue delete --namespace-name ACCOUNT --resource-group RESOURCE_GROUP --name dataavailable-fifo   # deletes what it holds\n")
	}
	require.Equal(t, 2, strings.Count(d.provision(1, "--diff"), "differs   servicebus queue"))
}

func TestProvision_LeavesAnotherDatabaseAlone(t *testing.T) {
	d := newAccounts(t)
	other := azcosmos.ContainerProperties{ID: "catalog", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Version: 2}}
	d.createContainer("other", other)
	d.provision(0)
	c, err := d.cosmos.NewContainer("other", "catalog")
	require.NoError(t, err)
	found, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, other.PartitionKeyDefinition.Paths, found.ContainerProperties.PartitionKeyDefinition.Paths)
	require.Contains(t, d.provision(1, "--diff", "--cosmos-database", "other"), "its partition key is /id, want /partitionKey")
}

// An older version created three containers without an index on the partition
// key, and queues with default properties, except for sessions. The command
// must correct them.
func TestProvision_CorrectsWhatAnOlderVersionCreated(t *testing.T) {
	d := newAccounts(t)
	containers := deployment.Containers()
	for i := range containers[:3] {
		properties := containers[i].Properties()
		properties.IndexingPolicy.IncludedPaths = properties.IndexingPolicy.IncludedPaths[1:]
		d.createContainer("messagehub", properties)
	}
	for name, sessions := range map[string]bool{"dataavailable-fifo": true, "dataavailable": false, "charges": true} {
		_, err := d.bus.CreateQueue(t.Context(), name, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{RequiresSession: &sessions}})
		require.NoError(t, err)
	}
	got := d.provision(0)
	require.Contains(t, got, "changed: index on /partitionKey/?")
	require.Contains(t, got, "changed: dead letters of expired messages true, was false")
	require.Contains(t, got, "changed: maximum size in MB 5120, was 1024")
	require.Empty(t, d.provision(0, "--diff"))
}

func TestProvision_MayRunAtTheSameTime(t *testing.T) {
	const processes = 4
	for _, prepare := range []func(*azureAccounts){
		func(*azureAccounts) {},
		func(d *azureAccounts) {
			d.provision(0)
			for _, name := range []string{"bundles", "streams", "cursors", "objects"} {
				d.change(name, func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
			}
			d.changeQueue("charges", func(p *admin.QueueProperties) { p.LockDuration = to.Ptr("PT5S") })
		},
	} {
		d := newAccounts(t)
		prepare(d)
		var ended sync.WaitGroup
		var problems atomic.Value
		for range processes {
			ended.Go(func() {
				if status, out, errs := d.run(t.Context()); status != 0 {
					problems.Store(out + errs)
				}
			})
		}
		ended.Wait()
		require.Nil(t, problems.Load())
		require.Empty(t, d.provision(0, "--diff"))
	}
}

// The command is interrupted after 1, 4, 7, … requests. The next run must
// complete the work.
func TestProvision_CompletesWhatWasInterrupted(t *testing.T) {
	for n, isDone := int64(1), false; !isDone; n += 3 {
		d := newAccounts(t)
		ctx, interrupt := context.WithCancel(t.Context())
		var requests atomic.Int64
		d.requested = func() {
			if requests.Add(1) == n {
				interrupt()
			}
		}
		status, _, _ := d.run(ctx)
		interrupt()
		d.requested = nil
		isDone = status == 0
		d.provision(0)
		require.Empty(t, d.provision(0, "--diff"))
	}
}

func TestProvision_DoesWhatTheOtherRightsAllow(t *testing.T) {
	d := newAccounts(t)
	all := d.environ
	for _, tc := range []struct{ service, variable, want string }{
		{"cosmos", "MESSAGEHUB_COSMOS_KEY=b3RoZXI=", "the account refuses the credential; check cosmos.key"},
		{"blob", "MESSAGEHUB_BLOB_KEY=b3RoZXI=", "read container messagehub-content of http://127.0.0.1:"},
		{"servicebus", "", "the namespace answered 401; use a connection string with the Manage right"},
	} {
		d.environ = append([]string(nil), all...)
		if tc.variable == "" {
			for _, v := range all {
				if strings.HasPrefix(v, "MESSAGEHUB_SERVICEBUS_CONNECTION=") {
					tc.variable = strings.Replace(v, "SAS_KEY_VALUE", "b3RoZXI=", 1)
				}
			}
		}
		d.setEnviron(tc.variable)
		for _, args := range [][]string{{}, {"--diff"}} {
			got := d.provision(1, args...)
			require.Contains(t, got, tc.want)
			require.NotContains(t, d.linesWithout(got, tc.service), "not known")
		}
	}
}

// The credentials may read everything, but lack the right for one kind of
// write. The error must name this right.
func TestProvision_SaysWhichRightIsMissing(t *testing.T) {
	older := func(d *azureAccounts) {
		d.provision(0)
		d.change("streams", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
		d.changeQueue("charges", func(p *admin.QueueProperties) { p.LockDuration = to.Ptr("PT5S") })
	}
	for _, tc := range []struct {
		name     string
		prepare  func(*azureAccounts)
		isAsked  func(*http.Request) bool
		want     string
		commands []string
	}{
		{"create the database", nil, func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/dbs" }, "create database messagehub", []string{"az cosmosdb sql database create", "az cosmosdb sql container create"}},
		{"create containers of Cosmos", nil, func(r *http.Request) bool {
			return r.Method == http.MethodPost && r.URL.Path == "/dbs/messagehub/colls"
		}, "Cosmos lets no data role create or change databases and containers", []string{"az cosmosdb sql container create"}},
		{"change containers of Cosmos", older, func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/colls/")
		}, "change container streams", []string{"az cosmosdb sql container update"}},
		{"create containers of blobs", nil, func(r *http.Request) bool {
			return r.Method == http.MethodPut && r.URL.Query().Get("restype") == "container"
		}, "create container messagehub-content", []string{"az storage container create"}},
		{"create queues", nil, func(r *http.Request) bool { return r.Method == http.MethodPut && r.URL.Path == "/charges" }, "create queue charges: the namespace answered 403; use a connection string with the Manage right", []string{"az servicebus queue create"}},
		{"change queues", older, func(r *http.Request) bool { return r.Method == http.MethodPut && r.URL.Path == "/charges" }, "change queue charges: the namespace answered 403", []string{"az servicebus queue update"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newAccounts(t)
			if tc.prepare != nil {
				tc.prepare(d)
			}
			d.refused = func(r *http.Request) int {
				if tc.isAsked(r) {
					return http.StatusForbidden
				}
				return 0
			}
			got := d.provision(1)
			require.Contains(t, got, tc.want)
			for _, command := range tc.commands {
				require.Contains(t, got, "\n  "+command+" ")
			}
			d.refused = nil
			d.provision(0)
			require.Empty(t, d.provision(0, "--diff"))
		})
	}
}

// A write of a queue fails with 409, because another process has written the
// queue. The command must succeed only if the queue has the required properties.
func TestProvision_AcceptsAQueueThatAnotherProcessCreated(t *testing.T) {
	right := deployment.Queue{Name: "charges", Sessions: true, Lock: "PT1M", MaxDeliveries: 10, MaxMegabytes: 1024}
	for _, tc := range []struct {
		name   string
		exists bool
		lock   string // lock duration of the queue that the other process creates
		status int
	}{
		{"created as it should be", false, right.Lock, 0},
		{"created in another way", false, "PT5S", 1},
		{"changed as it should be", true, right.Lock, 0},
		{"changed in another way", true, "PT10S", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newAccounts(t)
			d.provision(0)
			if tc.exists {
				d.changeQueue("charges", func(p *admin.QueueProperties) { p.LockDuration = to.Ptr("PT5S") })
			} else {
				_, err := d.bus.DeleteQueue(t.Context(), "charges", nil)
				require.NoError(t, err)
			}
			var isOther atomic.Bool
			d.refused = func(r *http.Request) int {
				if r.Method != http.MethodPut || r.URL.Path != "/charges" || isOther.Swap(true) {
					return 0
				}
				properties := admin.QueueProperties{
					RequiresSession: &right.Sessions, LockDuration: &tc.lock, MaxDeliveryCount: &right.MaxDeliveries, MaxSizeInMegabytes: &right.MaxMegabytes,
					DeadLetteringOnMessageExpiration: &right.DeadLettersExpired, DefaultMessageTimeToLive: to.Ptr(deployment.Forever),
				}
				var err error
				if tc.exists {
					_, err = d.bus.UpdateQueue(r.Context(), "charges", properties, nil)
				} else {
					_, err = d.bus.CreateQueue(r.Context(), "charges", &admin.CreateQueueOptions{Properties: &properties})
				}
				if err != nil {
					return http.StatusInternalServerError
				}
				return http.StatusConflict
			}
			got := d.provision(tc.status)
			if tc.status != 0 {
				require.Contains(t, got, "queue charges: the namespace answered 409 Conflict")
			}
			d.provision(0)
			require.Empty(t, d.provision(0, "--diff"))
		})
	}
}

// linesWithout returns the lines of a text that do not contain the name of a
// service.
func (d *azureAccounts) linesWithout(text, service string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, service) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
