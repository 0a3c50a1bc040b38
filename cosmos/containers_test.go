package cosmos

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// byHand holds the properties of containers that an operator creates by hand.
type byHand map[string]*azcosmos.ContainerProperties

// newByHand returns the properties that the hub needs.
func newByHand() byHand {
	all := make(byHand)
	for _, spec := range Containers() {
		properties := spec.Properties()
		all[spec.Name] = &properties
	}
	return all
}

// index replaces the indexing policy of a container.
func (b byHand) index(name string, included, excluded []string) {
	policy := &azcosmos.IndexingPolicy{Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent}
	for _, path := range included {
		policy.IncludedPaths = append(policy.IncludedPaths, azcosmos.IncludedPath{Path: path})
	}
	for _, path := range excluded {
		policy.ExcludedPaths = append(policy.ExcludedPaths, azcosmos.ExcludedPath{Path: path})
	}
	b[name].IndexingPolicy = policy
}

func (b byHand) unindexed(name string) {
	b[name].IndexingPolicy = &azcosmos.IndexingPolicy{IndexingMode: azcosmos.IndexingModeNone}
}

func (b byHand) ttl(name string, seconds int32) { b[name].DefaultTimeToLive = &seconds }

func (b byHand) unique(name, path string) {
	b[name].UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{path}}}}
}

// These constants are the times for which the properties of containers are cached.
const (
	maxContainerAge = 5 * time.Minute
	maxSuspectAge   = 10 * time.Second
)

// databaseName is the default name of the hub's database.
const databaseName = "messagehub"

// An account is an embedded engine with containers that were created by hand.
type account struct {
	t      *testing.T
	engine *embedded.Engine
	line   policy.Transporter
}

func newAccount(t *testing.T, containers byHand) *account {
	t.Helper()
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	a := &account{t: t, engine: engine, line: engine.Transport()}
	if containers == nil {
		return a
	}
	_, err = a.client().CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: databaseName}, nil)
	require.NoError(t, err)
	for _, properties := range containers {
		a.create(properties)
	}
	return a
}

func (a *account) connect() *client.Database {
	a.t.Helper()
	db, err := client.Connect(client.Connection{Endpoint: a.engine.Endpoint(), Key: a.engine.Key(), Transport: a.line})
	require.NoError(a.t, err)
	a.t.Cleanup(db.Close)
	return db
}

// client returns a client of the account that may create and delete databases.
func (a *account) client() *azcosmos.Client {
	a.t.Helper()
	key, err := azcosmos.NewKeyCredential(a.engine.Key())
	require.NoError(a.t, err)
	c, err := azcosmos.NewClientWithKey(a.engine.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: a.line}})
	require.NoError(a.t, err)
	return c
}

func (a *account) node(opts Options) *Repository {
	return New(a.connect(), memory.NewContent(), opts)
}

func (a *account) create(properties *azcosmos.ContainerProperties) {
	a.t.Helper()
	d, err := a.client().NewDatabase(databaseName)
	require.NoError(a.t, err)
	_, err = d.CreateContainer(a.t.Context(), *properties, nil)
	require.NoError(a.t, err)
}

func (a *account) remove(name string) {
	a.t.Helper()
	container, err := a.connect().Container(name)
	require.NoError(a.t, err)
	_, err = container.Delete(a.t.Context(), nil)
	require.NoError(a.t, err)
}

// replaceTTL sets the default TTL of an existing container.
func (a *account) replaceTTL(name string, seconds int32) {
	a.t.Helper()
	container, err := a.connect().Container(name)
	require.NoError(a.t, err)
	resp, err := container.Read(a.t.Context(), nil)
	require.NoError(a.t, err)
	resp.ContainerProperties.DefaultTimeToLive = &seconds
	_, err = container.Replace(a.t.Context(), *resp.ContainerProperties, nil)
	require.NoError(a.t, err)
}

// properties returns the properties of a container, as JSON.
func (a *account) properties(name string) string {
	a.t.Helper()
	container, err := a.connect().Container(name)
	require.NoError(a.t, err)
	resp, err := container.Read(a.t.Context(), nil)
	require.NoError(a.t, err)
	raw, err := runtime.Payload(resp.RawResponse)
	require.NoError(a.t, err)
	return string(raw)
}

const (
	inPlace = "messagehub provision" // part of the error if Provision can correct the container
	again   = "cannot be changed in place"
)

// wrongContainers lists properties of containers with which the hub must not start.
var wrongContainers = []struct {
	name  string
	set   func(byHand)
	want  []string // texts that the error must contain
	state client.ProvisionState
}{
	{"an index path is missing", func(b byHand) { b.index("catalog", []string{"/contentType/?"}, []string{"/*"}) }, []string{"container catalog", "/ordinal/?", inPlace}, client.StateUpdated},
	{"the path of a filter is missing", func(b byHand) { b.index("catalog", []string{"/ordinal/?"}, []string{"/*"}) }, []string{"container catalog", "/contentType/?", inPlace}, client.StateUpdated},
	{"an index path is excluded", func(b byHand) { b.index("cabinet", []string{"/*"}, []string{"/until/?"}) }, []string{"container cabinet", "/until/?", inPlace}, client.StateUpdated},
	{"the tree of a path is excluded", func(b byHand) { b.index("cabinet", []string{"/*"}, []string{`/"ordinal"/*`}) }, []string{"container cabinet", "/ordinal/?", inPlace}, client.StateUpdated},
	{"all paths are missing", func(b byHand) { b.index("bundles", nil, []string{"/*"}) }, []string{"container bundles", "/kind/?", inPlace}, client.StateUpdated},
	{"nothing is indexed", func(b byHand) { b.unindexed("cabinet") }, []string{"container cabinet", "indexing mode is none", "/ordinal/?, /until/?", inPlace}, client.StateUpdated},
	{"the partition key has another path", func(b byHand) { b["cabinet"].PartitionKeyDefinition.Paths = []string{"/id"} }, []string{"container cabinet", "/id", "/partitionKey", again}, client.StateUnfit},
	{"the partition key is hierarchical", func(b byHand) {
		b["bundles"].PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Kind: azcosmos.PartitionKeyKindMultiHash, Paths: []string{"/recipient", "/id"}, Version: 2}
	}, []string{"container bundles", "hierarchical (/recipient, /id)", again}, client.StateUnfit},
	{"a unique key", func(b byHand) { b.unique("catalog", "/contentType") }, []string{"container catalog", "unique key (/contentType)", again}, client.StateUnfit},
	{"no TTL where bundles expire", func(b byHand) { b["bundles"].DefaultTimeToLive = nil }, []string{"container bundles", "default TTL", "-1", inPlace}, client.StateUpdated},
	{"a TTL that deletes bundles", func(b byHand) { b.ttl("bundles", 60) }, []string{"container bundles", "default TTL is 60", "-1", inPlace}, client.StateUpdated},
	{"a TTL that deletes events", func(b byHand) { b.ttl("cabinet", 3600) }, []string{"container cabinet", "default TTL is 3600", "none", inPlace}, client.StateUpdated},
	{"a container is missing", func(b byHand) { delete(b, "bundles") }, []string{"container bundles", "does not exist", inPlace}, client.StateCreated},
}

func TestCheckContainers_NamesWrongContainers(t *testing.T) {
	for _, tc := range wrongContainers {
		t.Run(tc.name, func(t *testing.T) {
			containers := newByHand()
			tc.set(containers)
			err := newAccount(t, containers).node(Options{}).CheckContainers(t.Context())
			require.Error(t, err)
			for _, part := range tc.want {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "\n", "one problem, one line")
			require.Equal(t, domain.Unavailable, domain.KindOf(err))
		})
	}
}

func TestProvision_CorrectsWhatCanBeCorrectedInPlace(t *testing.T) {
	for _, tc := range wrongContainers {
		t.Run(tc.name, func(t *testing.T) {
			containers := newByHand()
			tc.set(containers)
			a := newAccount(t, containers)
			node := a.node(Options{})
			stateOf := func(all []client.Provisioned) client.ProvisionState {
				i := slices.IndexFunc(all, func(p client.Provisioned) bool { return p.State != client.StateOK })
				if i < 0 {
					return client.StateOK
				}
				return all[i].State
			}
			all, err := node.Provision(t.Context(), client.ProvisionOptions{CheckOnly: true, Repair: true})
			require.NoError(t, err)
			require.Contains(t, []client.ProvisionState{client.StateWrong, client.StateMissing, client.StateUnfit}, stateOf(all), "a check changes nothing")
			require.Error(t, client.Unfinished(all))

			all, err = node.Provision(t.Context(), client.ProvisionOptions{Repair: true})
			require.NoError(t, err)
			require.Equal(t, tc.state, stateOf(all))
			if tc.state == client.StateUnfit {
				require.ErrorContains(t, client.Unfinished(all), again)
				require.Error(t, node.CheckContainers(t.Context()))
				return
			}
			require.NoError(t, client.Unfinished(all))
			require.NoError(t, node.CheckContainers(t.Context()))
			all, err = node.Provision(t.Context(), client.ProvisionOptions{Repair: true})
			require.NoError(t, err)
			require.Equal(t, client.StateOK, stateOf(all), "the second time there is nothing to do")
		})
	}
}

func TestProvision_CreatesWhatTheCheckAccepts(t *testing.T) {
	for _, throughput := range []bool{false, true} {
		a := newAccount(t, nil)
		node := a.node(Options{})
		require.ErrorContains(t, node.CheckContainers(t.Context()), "container catalog of database messagehub: it does not exist")
		all, err := node.Provision(t.Context(), client.ProvisionOptions{Throughput: throughput})
		require.NoError(t, err)
		require.NoError(t, client.Unfinished(all))
		for i := range all {
			require.Equal(t, client.StateCreated, all[i].State, all[i].Name)
		}
		require.NoError(t, node.CheckContainers(t.Context()))
	}
}

func TestCheckContainers_AcceptsHarmlessDifferences(t *testing.T) {
	for name, set := range map[string]func(byHand){
		"as Provision creates them": func(byHand) {},
		"a TTL of -1 everywhere":    func(b byHand) { b.ttl("catalog", -1); b.ttl("cabinet", -1) },
		"an analytical store": func(b byHand) {
			forever := int32(-1)
			b["cabinet"].AnalyticalStoreTimeToLiveInSeconds = &forever
		},
		"the tree of a path": func(b byHand) {
			b.index("catalog", []string{"/partitionKey/*", "/ordinal/*", "/contentType/*"}, []string{"/*"})
		},
		"a quoted path": func(b byHand) {
			b.index("bundles", []string{`/"recipient"/?`, `/"expires"/?`, `/"kind"/?`}, []string{"/*", `/"_etag"/?`})
		},
		"a path below an exclusion": func(b byHand) {
			b.index("bundles", []string{"/recipient/?", "/expires/?", "/kind/?"}, []string{"/*", "/kind/*"})
		},
		"short keys under version 1": func(b byHand) { b["bundles"].PartitionKeyDefinition.Version = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			containers := newByHand()
			set(containers)
			var log strings.Builder
			node := newAccount(t, containers).node(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, node.CheckContainers(t.Context()))
			require.Empty(t, log.String())
		})
	}
}

func TestCheckContainers_WarnsOfSettingsThatCostMore(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(byHand)
		want string
	}{
		"the default indexing policy": {func(b byHand) { b["cabinet"].IndexingPolicy = nil }, costOfWiderIndex},
		"a path of a newer version":   {func(b byHand) { b.index("bundles", []string{"/kind/?"}, []string{"/*"}) }, "each sweep reads every bundle"},
		"a path of another program":   {func(b byHand) { b.index("bundles", []string{"/expires/?", "/kind/?", "/state/?"}, []string{"/*"}) }, "/state/?"},
		"long keys under version 1":   {func(b byHand) { b["catalog"].PartitionKeyDefinition.Version = 1 }, "101 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			containers := newByHand()
			tc.set(containers)
			var log strings.Builder
			node := newAccount(t, containers).node(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, node.CheckContainers(t.Context()))
			require.Contains(t, log.String(), "level=WARN")
			require.Contains(t, log.String(), tc.want)
			before := log.Len()
			require.NoError(t, node.ContainersFault(t.Context()))
			require.Equal(t, before, log.Len(), "once")
		})
	}
}

func TestCheckContainers_NamesThePriceOfAWiderIndex(t *testing.T) {
	price := func(containers byHand) float64 {
		registry := prometheus.NewRegistry()
		node := newAccount(t, containers).node(Options{Registerer: registry})
		recipient := repositorytest.NewActor()
		var before, after float64
		for _, units := range []*float64{&before, &after} { // the first Save of a recipient costs more; the second is measured
			_, err := node.Save(t.Context(), recipient, []domain.Event{repositorytest.Event(recipient)})
			require.NoError(t, err)
			*units = sumRequestUnits(t, registry)
		}
		return after - before
	}
	wide := newByHand()
	for _, properties := range wide {
		properties.IndexingPolicy = nil
	}
	require.InDelta(t, 1.3, price(wide)/price(newByHand()), 0.05)
	require.Contains(t, costOfWiderIndex, "1.3 times")
}

// sumRequestUnits sums the request units that a node has used.
func sumRequestUnits(t *testing.T, registry *prometheus.Registry) (sum float64) {
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "messagehub_cosmos_request_units_total" {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// TestProvision_KeepsUnknownProperties uses properties that azcosmos does not know and would drop.
func TestProvision_KeepsUnknownProperties(t *testing.T) {
	containers := newByHand()
	delete(containers, "cabinet")
	a := newAccount(t, containers)
	body := `{"id":"cabinet","partitionKey":{"kind":"Hash","paths":["/partitionKey"],"version":2},"defaultTtl":60,` +
		`"indexingPolicy":{"indexingMode":"consistent","automatic":true,"futureIndexes":[1],` +
		`"includedPaths":[{"path":"/ordinal/?","indexes":[{"kind":"Range"}]}],"excludedPaths":[{"path":"/*"},{"path":"/until/?"}]},` +
		`"clientEncryptionPolicy":{"policyFormatVersion":1},"changeFeedPolicy":{"retentionDuration":60}}`
	post := &bodyTransport{next: a.line, method: http.MethodPost, body: body}
	a.line = post
	d, err := a.client().NewDatabase(databaseName)
	require.NoError(t, err)
	_, err = d.CreateContainer(t.Context(), azcosmos.ContainerProperties{ID: "cabinet"}, nil)
	require.NoError(t, err)
	a.line = post.next

	all, err := a.node(Options{}).Provision(t.Context(), client.ProvisionOptions{Repair: true})
	require.NoError(t, err)
	require.NoError(t, client.Unfinished(all))
	require.Equal(t, []string{"default TTL none, was 60", "index on /partitionKey/?", "index on /until/?"}, all[2].Changes)
	after := a.properties("cabinet")
	for _, kept := range []string{`"futureIndexes":[1]`, `"indexes":[{"kind":"Range"}]`, `"clientEncryptionPolicy":{"policyFormatVersion":1}`, `"changeFeedPolicy":{"retentionDuration":60}`} {
		require.Contains(t, after, kept)
	}
	require.NotContains(t, after, "defaultTtl")
}

func TestProvision_NarrowsAnIndexOnlyOnRequest(t *testing.T) {
	containers := newByHand()
	containers["cabinet"].IndexingPolicy = nil
	a := newAccount(t, containers)
	node := a.node(Options{})
	all, err := node.Provision(t.Context(), client.ProvisionOptions{Repair: true})
	require.NoError(t, err)
	require.Equal(t, client.StateOK, all[2].State)
	require.NotEmpty(t, all[2].Notes)
	all, err = node.Provision(t.Context(), client.ProvisionOptions{Repair: true, NarrowIndex: true})
	require.NoError(t, err)
	require.Equal(t, client.StateUpdated, all[2].State)
	var got struct {
		Policy struct {
			Included []azcosmos.IncludedPath `json:"includedPaths"`
		} `json:"indexingPolicy"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.properties("cabinet")), &got))
	require.Equal(t, []azcosmos.IncludedPath{{Path: "/partitionKey/?"}, {Path: "/ordinal/?"}, {Path: "/until/?"}}, got.Policy.Included)
	all, err = node.Provision(t.Context(), client.ProvisionOptions{Repair: true, NarrowIndex: true})
	require.NoError(t, err)
	require.Equal(t, client.StateOK, all[2].State)
	require.Empty(t, all[2].Notes)
}

// A bodyTransport replaces the body of all requests with one HTTP method.
type bodyTransport struct {
	next   policy.Transporter
	method string
	body   string
}

func (b *bodyTransport) Do(req *http.Request) (*http.Response, error) {
	if req.Method == b.method {
		changed, err := http.NewRequestWithContext(req.Context(), req.Method, req.URL.String(), strings.NewReader(b.body))
		if err != nil {
			return nil, err
		}
		changed.Header = req.Header
		return b.next.Do(changed)
	}
	return b.next.Do(req)
}

// A refusingTransport responds to matching requests with an error status.
type refusingTransport struct {
	next    policy.Transporter
	status  int
	matches func(*http.Request) bool
}

func (r *refusingTransport) Do(req *http.Request) (*http.Response, error) {
	if !r.matches(req) {
		return r.next.Do(req)
	}
	return &http.Response{
		StatusCode: r.status, Status: http.StatusText(r.status), Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: http.NoBody,
	}, nil
}

func isContainer(req *http.Request) bool {
	segments := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	return len(segments) == 4 && segments[2] == "colls" || len(segments) == 3 && segments[2] == "colls"
}

func TestCheckContainers_NamesTheRightThatIsMissing(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusUnauthorized: "the account refuses the credential; check cosmos.key",
		http.StatusForbidden:    "the credential may not read its properties; give it a role with the data action Microsoft.DocumentDB/databaseAccounts/readMetadata",
	} {
		a := newAccount(t, newByHand())
		a.line = &refusingTransport{a.line, status, isContainer}
		node := a.node(Options{})
		err := node.CheckContainers(t.Context())
		require.ErrorContains(t, err, "container catalog of database messagehub: "+want)
		require.NotContains(t, err.Error(), "\n")
		all, err := node.Provision(t.Context(), client.ProvisionOptions{Repair: true})
		require.NoError(t, err)
		for i := range all {
			require.Equal(t, client.StateUnknown, all[i].State)
		}
		require.ErrorContains(t, client.Unfinished(all), want)
		require.NotContains(t, client.Unfinished(all).Error(), "\n", "once")
	}
}

func TestProvision_LeavesWhatTheCredentialMayNotDo(t *testing.T) {
	containers := newByHand()
	delete(containers, "bundles")
	containers.index("catalog", nil, []string{"/*"})
	a := newAccount(t, containers)
	a.line = &refusingTransport{a.line, http.StatusForbidden, func(req *http.Request) bool { return isContainer(req) && req.Method != http.MethodGet }}
	all, err := a.node(Options{}).Provision(t.Context(), client.ProvisionOptions{Repair: true})
	require.NoError(t, err)
	require.Equal(t, client.StateWrong, all[1].State)
	require.Equal(t, client.StateOK, all[2].State)
	require.Equal(t, client.StateMissing, all[3].State)
	err = client.Unfinished(all)
	require.ErrorContains(t, err, "change container catalog: cosmos answered 403")
	require.ErrorContains(t, err, "create container bundles: cosmos answered 403")
	require.ErrorContains(t, err, "Cosmos lets no data role create or change databases and containers")
}

// TestContainersFault_NoticesWhatChangesUnderARunningHub changes a container while a hub runs, and then
// calls the hub.
func TestContainersFault_NoticesWhatChangesUnderARunningHub(t *testing.T) {
	replace := func(name string, change func(byHand)) func(*account) {
		return func(a *account) {
			containers := newByHand()
			change(containers)
			a.remove(name)
			a.create(containers[name])
		}
	}
	for name, tc := range map[string]struct {
		change func(*account)
		fails  bool // whether calls of the hub fail after the change
	}{
		"deleted":               {func(a *account) { a.remove("cabinet") }, true},
		"with another key":      {replace("cabinet", func(b byHand) { b["cabinet"].PartitionKeyDefinition.Paths = []string{"/id"} }), true},
		"without an index":      {replace("cabinet", func(b byHand) { b.unindexed("cabinet") }), true},
		"created again, empty":  {replace("catalog", func(byHand) {}), false},
		"with a TTL of an hour": {func(a *account) { a.replaceTTL("cabinet", 3600) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t, newByHand())
			var late atomic.Int64
			node := a.node(Options{Retries: 3, Clock: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
			require.NoError(t, node.CheckContainers(t.Context()))
			recipient := repositorytest.NewActor()
			save := func() error {
				_, err := node.Save(t.Context(), recipient, []domain.Event{repositorytest.Event(recipient)})
				return err
			}
			peek := func() error {
				_, err := node.NextUnacknowledged(t.Context(), recipient, allGroups)
				return err
			}
			require.NoError(t, save())
			tc.change(a)
			failed := false
			for i, call := range []func() error{peek, save, peek, save} {
				if err := call(); err != nil && !errors.Is(err, domain.ErrNoData) {
					failed = true
					require.Contains(t, []domain.Kind{domain.Unavailable, domain.Uncertain}, domain.KindOf(err), "call %d: %v", i, err)
				}
			}
			require.Equal(t, tc.fails, failed)
			if !failed {
				require.NoError(t, node.ContainersFault(t.Context()), "nothing is read yet")
				late.Add(int64(maxContainerAge))
			}
			require.ErrorContains(t, node.ContainersFault(t.Context()), "container ")
		})
	}
}

func TestContainersFault_EndsWhenTheContainerIsCorrected(t *testing.T) {
	a := newAccount(t, newByHand())
	var late atomic.Int64
	node := a.node(Options{Clock: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
	require.NoError(t, node.CheckContainers(t.Context()))
	a.replaceTTL("cabinet", 60)
	late.Add(int64(maxContainerAge))
	require.ErrorContains(t, node.ContainersFault(t.Context()), "default TTL is 60")
	require.NoError(t, a.connect().Provision(t.Context(), Containers()))
	require.Error(t, node.ContainersFault(t.Context()), "the last read counts for a while")
	late.Add(int64(maxSuspectAge))
	require.NoError(t, node.ContainersFault(t.Context()))
}

func TestContainersFault_IsNilWhileTheAccountIsUnreachable(t *testing.T) {
	a := newAccount(t, newByHand())
	away := &refusingTransport{next: a.line, status: http.StatusServiceUnavailable, matches: func(*http.Request) bool { return false }}
	a.line = away
	var late atomic.Int64
	node := a.node(Options{Clock: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
	require.NoError(t, node.CheckContainers(t.Context()))
	away.matches = isContainer
	late.Add(int64(maxContainerAge))
	require.NoError(t, node.ContainersFault(t.Context()))
}

func TestContainersFault_UsesTheCachedProperties(t *testing.T) {
	a := newAccount(t, newByHand())
	node := a.node(Options{})
	require.NoError(t, node.CheckContainers(t.Context()))
	before := a.engine.Requests()
	for range 100 {
		require.NoError(t, node.ContainersFault(t.Context()))
	}
	require.Equal(t, before, a.engine.Requests())
}
