package main_test

import "slices"

// A row lists packages, the packages of this module that they may import, and
// the reason for the restriction. A package is named by its folder; "x/..."
// stands for x and all packages below it. Unless the row is pure, packages of
// other modules may be imported.
type row struct {
	packages []string
	may      []string
	why      string

	// tests lists packages that only test files may import.
	tests []string

	// pure restricts the packages to standard library packages that do not
	// access anything outside the process.
	pure bool
}

// everything is the pattern that matches all packages of this module.
const everything = "..."

// A test may import its package, the imports of its package, and the packages
// that are listed here or in its row: the rules, the ports, their oracle and
// their suite. A test of an adapter must not import another adapter. A test
// that needs two adapters tests the node, and belongs in cmd or bench.
var (
	rulesAndOracle = []string{"domain", "domain/hub", "repository", "repository/memory", "repository/repositorytest", "repository/content"}
	storageTests   = append(slices.Clip(rulesAndOracle), "cosmos/faulty", "cosmos/accounttest", "cosmos/embedded/...")
	busTests       = append(slices.Clip(rulesAndOracle), "api/servicebus/embedded/...", "api/servicebus/internal/bustest", "repository/content/embedded")
)

// toolkit lists packages that are useful for any engine or server. They do not
// depend on the hub's messages, so every engine and server may import them.
var toolkit = []string{
	"cosmos/embedded/accept",
	"cosmos/embedded/certificate",
	"cosmos/embedded/checksum",
	"cosmos/embedded/clock",
	"cosmos/embedded/connlimit",
	"cosmos/embedded/datafolder",
	"cosmos/embedded/httpserve",
	"cosmos/embedded/loopback",
}

// table contains the import rules of the module. A new package needs a row, so
// that its layer is chosen deliberately.
var table = []row{
	{
		packages: []string{"domain"},
		tests:    []string{"domain/objecttest"},
		pure:     true,
		why:      "rules stay pure and test in milliseconds",
	},
	{
		packages: []string{"repository"},
		may:      []string{"domain"},
		tests:    rulesAndOracle,
		why:      "a port speaks the words of the rules, never those of a store",
	},
	{
		packages: []string{"domain/hub"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/delivery"},
		may:      []string{"domain", "repository"},
		tests:    append(slices.Clip(rulesAndOracle), "domain/delivery/deliverytest"),
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/delivery/deliverytest"},
		may:      []string{"domain", "domain/delivery", "repository", "repository/repositorytest"},
		why:      "the promises of an engine hold over every store, so it knows none",
	},
	{
		packages: []string{"domain/objecttest"},
		may:      []string{"domain"},
		why:      "tables and histories of objects hold for the rules and for every store",
	},
	{
		packages: []string{"domain/filter"},
		may:      []string{"domain"},
		why:      "expressions are evaluated on values alone",
	},
	{
		packages: []string{"domain/publish"},
		may:      []string{"domain", "repository"},
		tests:    append(slices.Clip(rulesAndOracle), "domain/objecttest"),
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/outcome"},
		may:      []string{"domain", "domain/filter", "domain/publish", "domain/subscribe", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/subscribe"},
		may:      []string{"domain", "domain/delivery", "domain/filter", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them; owners see the warnings that the engine logs",
	},
	{
		packages: []string{"domain/replay"},
		may:      []string{"domain", "domain/filter", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/broker"},
		may:      []string{"domain", "repository"},
		tests:    append(slices.Clip(rulesAndOracle), "domain/delivery"),
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/watch"},
		may:      []string{"domain", "repository"},
		tests:    append(slices.Clip(rulesAndOracle), "domain/delivery", "domain/objecttest"),
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/ledger"},
		may:      []string{"domain", "repository"},
		tests:    append(slices.Clip(rulesAndOracle), "domain/objecttest"),
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/deadletters"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/journal"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/receiverlist"},
		may:      []string{"domain", "domain/subscribe", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them; operators see the states that owners see",
	},
	{
		packages: []string{"domain/inspect"},
		may:      []string{"domain", "domain/delivery", "domain/filter", "domain/subscribe", "repository"},
		tests:    rulesAndOracle,
		why:      "it reads what the other use cases keep, by the ports, and changes nothing",
	},
	{
		packages: []string{"domain/survey"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "it orders what a port returns, and reads no mailbox",
	},
	{
		packages: []string{"domain/find"},
		may:      []string{"domain", "domain/inspect", "repository"},
		tests:    rulesAndOracle,
		why:      "it reads what the other use cases keep, by the ports, and changes nothing",
	},
	{
		packages: []string{"repository/memory"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "the oracle judges every store, so it knows none",
	},
	{
		packages: []string{"repository/repositorytest"},
		may:      []string{"domain", "domain/objecttest", "repository", "bench/ledger"},
		tests:    rulesAndOracle,
		why:      "the contract judges every store, so it knows none; what was lost is judged as everywhere, by the ledger",
	},
	{
		packages: []string{"repository/content"},
		may:      []string{"domain", "repository", "cosmos/embedded/datafolder"},
		tests:    append(slices.Clip(rulesAndOracle), "repository/content/embedded"),
		why:      "an adapter, replaceable; how a folder is made durable is no matter of objects",
	},
	{
		packages: []string{"repository/source", "repository/source/azure", "repository/source/s3"},
		may:      []string{"domain", "repository", "repository/source"},
		tests:    append(slices.Clip(rulesAndOracle), "repository/content/embedded"),
		why:      "an adapter, replaceable; what holds for all stores is in repository/source",
	},
	{
		packages: []string{"repository/source/folder"},
		may:      []string{"domain", "repository", "repository/content", "repository/source"},
		tests:    rulesAndOracle,
		why:      "an adapter, replaceable; package content knows the names of files in its layout",
	},
	{
		packages: []string{"repository/content/embedded"},
		may:      toolkit,
		why:      "if the account knew our objects, tests would prove only themselves; the toolkit knows none",
	},
	{
		packages: []string{"cosmos/client"},
		may:      []string{"domain"},
		tests:    []string{"cosmos/faulty", "cosmos/embedded"},
		why:      "one way to speak to Cosmos for every adapter; it knows no document",
	},
	{
		packages: []string{"cosmos"},
		may:      []string{"domain", "repository", "cosmos/client", "cosmos/survey"},
		tests:    append(slices.Clip(storageTests), "domain/survey"),
		why:      "an adapter, replaceable; cosmos and api never meet",
	},
	{
		packages: []string{"cosmos/push"},
		may:      []string{"domain", "repository", "cosmos/client"},
		tests:    append(slices.Clip(storageTests), "domain/delivery", "domain/delivery/deliverytest", "domain/replay", "domain/watch"),
		why:      "an adapter, replaceable; it knows no document of cosmos",
	},
	{
		packages: []string{"cosmos/probe"},
		may:      []string{"cosmos/client"},
		tests:    storageTests,
		why:      "it tests rights on a document of its own, and knows no other",
	},
	{
		packages: []string{"cosmos/survey"},
		may:      []string{"domain", "repository", "cosmos/client"},
		tests:    storageTests,
		why:      "it follows changes and keeps lines, and knows no document of a mailbox; what a line says is for the adapter that stores mailboxes",
	},
	{
		packages: []string{"cosmos/level"},
		may:      []string{"domain", "cosmos/client"},
		tests:    storageTests,
		why:      "it knows no document but its own; which formats belong to a level is for the node",
	},
	{
		packages: []string{"repository/inventory"},
		may:      []string{"domain"},
		why:      "files of one format, behind an option of domain/ledger",
	},
	{
		packages: []string{"cosmos/objects"},
		may:      []string{"domain", "repository", "cosmos/client"},
		tests:    append(slices.Clip(storageTests), "domain/ledger", "domain/objecttest"),
		why:      "an adapter, replaceable; it knows no document of cosmos",
	},
	{
		packages: []string{"cosmos/accounttest"},
		may:      []string{"cosmos/client", "cosmos/embedded", "cosmos/faulty", "repository", "repository/memory"},
		why:      "the account that the tests of every adapter of Cosmos share; it knows no document",
	},
	{
		packages: []string{"cosmos/faulty"},
		why:      "it breaks HTTP calls, whatever they say",
	},
	{
		packages: toolkit,
		may:      toolkit,
		why:      "the toolkit serves engines and servers of any kind and needs only itself",
	},
	{
		packages: []string{"cosmos/embedded/..."},
		may:      []string{"cosmos/embedded/..."},
		why:      "if the engine knew our messages, tests would prove only themselves",
	},
	{
		packages: []string{"api"},
		may:      []string{"domain", "domain/broker", "domain/deadletters", "domain/find", "domain/hub", "domain/inspect", "domain/ledger", "domain/outcome", "domain/publish", "domain/replay", "domain/subscribe", "domain/survey", "domain/watch", "api/broker", "api/console", "api/docs", "api/identity", "api/internal/cloudevent", "api/internal/etag", "api/internal/eventjson", "api/internal/hubmetrics", "api/internal/objectjson", "api/internal/pathparam", "api/internal/query", "api/loglevel", "api/tracing"},
		tests:    append(slices.Clip(rulesAndOracle), "domain/objecttest", "api/guide", "api/identity/identitytest", "api/jsonpatch"),
		why:      "edges decode, call, encode; cosmos and api never meet",
	},
	{
		packages: []string{"api/servicebus", "api/servicebus/contentrequest", "api/servicebus/ingest"},
		may:      []string{"domain", "domain/hub", "api/internal/eventjson", "api/tracing", "api/internal/hubmetrics", "api/servicebus/contract", "api/servicebus/internal/busclient", "api/servicebus/internal/receiver"},
		tests:    busTests,
		why:      "edges decode, call, encode; cosmos and api never meet",
	},
	{
		packages: []string{"api/servicebus/deadletterqueue"},
		may:      []string{"domain", "domain/deadletters", "api/servicebus/contract", "api/servicebus/internal/busclient"},
		tests:    busTests,
		why:      "it reaches the dead letters of any queue, and decides nothing about them",
	},
	{
		packages: []string{"api/servicebus/objectevents"},
		may:      []string{"domain", "domain/ledger", "api/internal/hubmetrics", "api/internal/objectjson", "api/servicebus/contract", "api/tracing", "api/servicebus/internal/busclient", "api/servicebus/internal/receiver"},
		tests:    busTests,
		why:      "edges decode, call, encode; cosmos and api never meet",
	},
	{
		packages: []string{"api/broker"},
		may:      []string{"domain", "domain/broker", "api/internal/etag", "api/internal/pathparam", "api/internal/query"},
		tests:    rulesAndOracle,
		why:      "it is a part of the server of api, which it knows as its host",
	},
	{
		packages: []string{"api/console"},
		may:      []string{"domain", "domain/broker", "domain/deadletters", "domain/find", "domain/hub", "domain/inspect", "domain/journal", "domain/ledger", "domain/receiverlist", "domain/subscribe", "domain/survey", "domain/watch", "repository", "api/identity", "api/internal/cloudevent", "api/internal/hubmetrics", "api/internal/pathparam"},
		tests:    append(slices.Clip(rulesAndOracle), "api", "domain/objecttest", "domain/replay"),
		why:      "pages call use cases; it is a part of the server of api, which it knows as its host",
	},
	{
		packages: []string{"api/guide", "deploy/handbook"},
		why:      "they hold pages, and no code",
	},
	{
		packages: []string{"deploy/observability"},
		why:      "it copies files, and needs no package of ours",
	},
	{
		packages: []string{"deploy/notices"},
		why:      "it looks at modules from outside, and needs no package of ours",
	},
	{
		packages: []string{"api/docs"},
		may:      []string{"api/guide", "deploy/handbook"},
		why:      "it renders pages, and knows neither a route nor a use case",
	},
	{
		packages: []string{"api/identity"},
		may:      []string{"domain"},
		tests:    []string{"api/identity/identitytest"},
		why:      "it finds out who sends a request, and knows no route",
	},
	{
		packages: []string{"api/identity/identitytest"},
		why:      "an issuer that knew the hub would prove only itself",
	},
	{
		packages: []string{"api/broker/failsafe"},
		may:      []string{"domain", "api/broker/brokerclient"},
		why:      "it sees a hub as any client does, and knows no store and no use case",
	},
	{
		packages: []string{"api/internal/etag", "api/internal/pathparam", "api/internal/query"},
		may:      []string{"domain"},
		why:      "one way to read a request, whichever package serves it",
	},
	{
		packages: []string{"api/loglevel"},
		why:      "a level and a clock; routes, node and command share it",
	},
	{
		packages: []string{"api/tracing"},
		may:      []string{"domain"},
		why:      "one form of a trace context, at every edge",
	},
	{
		packages: []string{"cmd/node/otlp"},
		why:      "it sends spans, whatever they are about",
	},
	{
		packages: []string{"api/jsonpatch"},
		why:      "it applies a patch to a text, whatever that is about",
	},
	{
		packages: []string{"api/webhook"},
		may:      []string{"domain"},
		tests:    rulesAndOracle,
		why:      "it sends what the push side has taken, and knows neither streams nor stores",
	},
	{
		packages: []string{"api/broker/brokerclient"},
		may:      []string{"api/hubclient", "api/webhook"},
		why:      "producers and consumers import it, and get no hub along with it; it verifies calls as every receiver does",
	},
	{
		packages: []string{"api/hubclient"},
		why:      "actors and domains import it, and get no hub along with it",
	},
	{
		packages: []string{"api/internal/eventjson"},
		may:      []string{"domain"},
		why:      "one form of an event, whichever edge it comes to",
	},
	{
		packages: []string{"api/internal/cloudevent"},
		may:      []string{"domain", "api/internal/eventjson"},
		why:      "the general form of an event; which events the hub itself knows is for eventjson",
	},
	{
		packages: []string{"api/internal/hubmetrics"},
		why:      "what several edges count together is one metric",
	},
	{
		packages: []string{"api/internal/objectjson"},
		may:      []string{"domain", "api/internal/cloudevent", "api/internal/eventjson"},
		why:      "one form of an event of an object, at both edges",
	},
	{
		packages: []string{"api/servicebus/contract"},
		why:      "what is on the wire is agreed with others, and changes for none of our reasons",
	},
	{
		packages: []string{"api/servicebus/internal/busclient"},
		tests:    []string{"api/servicebus/embedded"},
		why:      "it connects, sends and receives, whatever the messages say; domain teams get it with domainclient, and no hub",
	},
	{
		packages: []string{"api/servicebus/internal/receiver"},
		may:      []string{"domain", "api/tracing", "api/internal/hubmetrics", "api/servicebus/internal/busclient"},
		tests:    []string{"api/servicebus/embedded", "api/servicebus/internal/bustest"},
		why:      "a loop receives messages of any system, and knows none",
	},
	{
		packages: []string{"api/servicebus/internal/bustest"},
		may:      []string{"domain", "api/servicebus/contract", "api/servicebus/embedded", "api/servicebus/internal/busclient"},
		why:      "tests of the edge share a bus, and only they import it",
	},
	{
		packages: []string{"api/servicebus/probe"},
		may:      []string{"api/servicebus/internal/busclient"},
		tests:    []string{"api/servicebus/embedded"},
		why:      "it opens links to queues, and knows no message",
	},
	{
		packages: []string{"api/servicebus/domainclient"},
		may:      []string{"api/servicebus/contract", "api/servicebus/internal/busclient", "api/servicebus/internal/receiver"},
		tests:    busTests,
		why:      "domain teams import it, and get no hub along with it",
	},
	{
		packages: []string{"api/servicebus/embedded/..."},
		may:      append([]string{"api/servicebus/embedded/...", "cosmos/embedded/disk"}, toolkit...),
		tests:    []string{"cosmos/embedded/disk/disktest"},
		why:      "if the bus knew our messages, tests would prove only themselves; disk and toolkit know none",
	},
	{
		packages: []string{"cmd/node/config"},
		may:      []string{"domain", "api/servicebus/contract", "cosmos/embedded/loopback"},
		why:      "a configuration names the parts, it does not build them; which addresses are safe is decided in one place",
	},
	{
		packages: []string{"cmd/node/doctor"},
		why:      "it runs checks and reports them; which checks there are is for the node",
	},
	{
		packages: []string{"cmd/node/deployment"},
		may:      []string{"domain", "cosmos", "cosmos/client", "cosmos/objects", "cosmos/push", "cmd/node/config"},
		why:      "a table lists what the adapters need on Azure; it makes no request",
	},
	{
		packages: []string{"cmd/hubtest"},
		may:      []string{"api/hubclient", "cmd/node", "cmd/node/config"},
		why:      "it starts the hub that ships for tests of users, who see it by its client",
	},
	{
		packages: []string{"cmd/terminal"},
		why:      "every program may use it, so it knows none of our words",
	},
	{
		packages: []string{"cmd/messagehub/internal/energymarket"},
		may:      []string{"bench/ledger"},
		why:      "it makes and accounts for data, and starts nothing",
	},
	{
		packages: []string{"cmd/messagehub/internal/hubclient"},
		may:      []string{"domain", "domain/hub", "api/hubclient", "cmd/node/config", "cosmos/embedded/loopback"},
		why:      "it sees a hub as any client does, so it starts none and opens no store",
	},
	{
		packages: []string{"cmd/messagehub/internal/checkreport"},
		may:      []string{"domain/hub", "cmd/terminal"},
		why:      "it prints what a check has found, wherever that ran",
	},
	{
		packages: []string{"cmd/messagehub/internal/demo"},
		may: []string{
			"domain", "domain/hub", "api/broker/brokerclient", "api/servicebus/domainclient", "api/webhook", "repository/content", "repository/content/embedded", "cosmos/embedded/clock", "cosmos/embedded/httpserve", "bench/ledger", "cmd/node", "cmd/node/config", "cmd/terminal",
			"cmd/devissuer", "cmd/messagehub/internal/energymarket", "cmd/messagehub/internal/hubclient", "cmd/messagehub/internal/checkreport",
		},
		why: "it starts a hub as the command does, and looks at it from outside, also as a receiver of its calls",
	},
	{
		packages: []string{"cmd/messagehub/internal/azuretemplate"},
		may:      []string{"domain", "cosmos/client", "cmd/node/config", "cmd/node/deployment"},
		tests:    []string{"cmd/messagehub/internal/azuretemplate/armtest"},
		why:      "it writes a table in the languages of Azure, and makes no request",
	},
	{
		packages: []string{"cmd/messagehub/internal/azuretemplate/armtest"},
		why:      "if it knew how a template is written, tests would prove only themselves",
	},
	{
		packages: []string{"cmd/messagehub/internal/azuretemplate/writefiles"},
		may:      []string{"cmd/messagehub/internal/azuretemplate"},
		why:      "it writes files, and knows nothing of what is in them",
	},
	{
		packages: []string{"cmd/messagehub/internal/emulator"},
		may:      append([]string{"cosmos/embedded", "cosmos/embedded/disk", "api/servicebus/embedded", "repository/content/embedded", "cmd/node/config"}, toolkit...),
		why:      "it serves an engine to any client, and starts no hub",
	},
	{
		packages: []string{"cmd/devissuer"},
		may:      toolkit,
		why:      "it signs tokens for any hub, and starts none",
	},
	{
		packages: []string{"cmd/messagehub/internal/subscriptionfile"},
		may:      []string{"domain", "domain/filter", "api/webhook", "cmd/messagehub/internal/hubclient"},
		why:      "it compares a file with what a hub shows, and changes nothing",
	},
	{
		packages: []string{"cmd/messagehub/internal/certify"},
		may:      append([]string{"api/webhook", "domain", "cmd/terminal"}, toolkit...),
		why:      "it sees a receiver as a hub does, and starts none",
	},
	{
		packages: []string{"cmd/messagehub/internal/receiver"},
		may:      append([]string{"api/webhook", "cmd/terminal"}, toolkit...),
		tests:    []string{"domain"},
		why:      "it receives calls of any hub, and starts none",
	},
	{
		packages: []string{"cmd/node/backup"},
		may:      []string{"cosmos/embedded/datafolder"},
		why:      "it copies files, and knows no store and no document",
	},
	{
		packages: []string{"cmd/node", "cmd/messagehub"},
		may:      []string{everything},
		why:      "the one place that knows which adapter is in use",
	},
	{
		packages: []string{"bench/ledger"},
		pure:     true,
		why:      "it judges what clients of a hub see, and so needs nothing of the hub; and every test may use it",
	},
	{
		packages: []string{"bench/model/smallsaves"},
		pure:     true,
		why:      "a model that knew the code would have its faults",
	},
	{
		packages: []string{"bench/..."},
		may: []string{
			"domain/...", "repository/...", "cosmos/...", "api/...", "bench/...",
			"cmd/node/...", "cmd/terminal", "cmd/devissuer",
		},
		why: "it measures and simulates the node that ships, not the command around it",
	},
}
