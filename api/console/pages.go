package console

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/identity"
)

const (
	root = "/console"

	get  = http.MethodGet
	post = http.MethodPost
)

// A pageRoute is the method and path of a page, with its handler.
type pageRoute struct {
	method, path string        // path is below root
	role         identity.Role // role that the operator must have; if "", the page is public
	serve        func(*visit) error
}

// isFragment reports whether the response is a part of a page that htmx fetches repeatedly. Such
// requests do not extend a session.
func (p *pageRoute) isFragment() bool { return strings.HasPrefix(p.path, "/part/") }

// The roles of operators.
const (
	look  = identity.RoleOperatorRead
	order = identity.RoleOperator
)

// pages lists all pages. Each path with POST also has GET, which shows the form, so that a form
// whose session has ended can be shown again.
var pages []pageRoute

func init() { // an initializer of pages would be an initialization cycle, because handlers refer to pages
	pages = []pageRoute{
		{get, "/", look, (*visit).overview},
		{get, "/part/rates", look, (*visit).ratesPart},
		{get, "/sample", order, (*visit).showSample},
		{post, "/sample", order, (*visit).sendSample},

		{get, "/mailboxes", look, (*visit).mailboxes},
		{get, "/mailboxes/{actor}", look, (*visit).mailbox},
		{get, "/mailboxes/{actor}/records", look, (*visit).records},
		{get, "/mailboxes/{actor}/bundles/{bundle}", look, (*visit).bundle},
		{get, "/mailboxes/{actor}/bundles/{bundle}/look", order, (*visit).viewBundle},
		{post, "/mailboxes/{actor}/bundles/{bundle}/look", order, (*visit).viewBundle},
		{get, "/mailboxes/{actor}/orders/{order}", order, (*visit).giveOrder},
		{post, "/mailboxes/{actor}/orders/{order}", order, (*visit).giveOrder},

		{get, "/find", look, (*visit).find},

		{get, "/dead-letters", look, (*visit).deadLetterQueues},
		{get, "/dead-letters/{queue}", look, (*visit).deadLetters},
		{get, "/dead-letters/{queue}/records", look, (*visit).deadLetterRecords},
		{get, "/dead-letters/{queue}/some/{order}", order, (*visit).orderDeadLetters},
		{post, "/dead-letters/{queue}/some/{order}", order, (*visit).orderDeadLetters},
		{get, "/dead-letters/{queue}/letters/{number}/{order}", order, (*visit).orderDeadLetter},
		{post, "/dead-letters/{queue}/letters/{number}/{order}", order, (*visit).orderDeadLetter},

		{get, "/subscriptions", look, (*visit).subscriptions},
		{get, "/subscriptions/{actor}/{subscription}", look, (*visit).subscription},
		{get, "/subscriptions/{actor}/{subscription}/records", look, (*visit).subscriptionRecords},
		{get, "/subscriptions/{actor}/{subscription}/pause", order, (*visit).pauseSubscription},
		{post, "/subscriptions/{actor}/{subscription}/pause", order, (*visit).pauseSubscription},
		{get, "/subscriptions/{actor}/{subscription}/resume", order, (*visit).resumeSubscription},
		{post, "/subscriptions/{actor}/{subscription}/resume", order, (*visit).resumeSubscription},
		{get, "/subscriptions/{actor}/{subscription}/deliveries/{delivery}", look, (*visit).delivery},
		{get, "/subscriptions/{actor}/{subscription}/deliveries/{delivery}/replay", order, (*visit).replayDelivery},
		{post, "/subscriptions/{actor}/{subscription}/deliveries/{delivery}/replay", order, (*visit).replayDelivery},

		{get, "/watches", look, (*visit).watches},
		{get, "/watches/{actor}/{watch}", look, (*visit).watch},

		{get, "/broker", look, (*visit).brokerOverview},
		{get, "/broker/channels/{channel}", look, (*visit).brokerChannel},
		{get, "/broker/channels/{channel}/{consumer}", look, (*visit).brokerConsumer},
		{get, "/broker/channels/{channel}/{consumer}/records", look, (*visit).consumerRecords},
		{get, "/broker/channels/{channel}/{consumer}/messages/{message}/re-trigger", order, (*visit).retriggerJob},
		{post, "/broker/channels/{channel}/{consumer}/messages/{message}/re-trigger", order, (*visit).retriggerJob},

		{get, "/objects", look, (*visit).objects},
		{get, "/objects/rows/{object}", look, (*visit).object},
		{get, "/objects/jobs/{kind}", look, (*visit).jobs},
		{get, "/objects/jobs/{kind}/{job}", look, (*visit).job},
		{get, "/objects/jobs/{kind}/{job}/records", look, (*visit).jobRecords},
		{get, "/objects/jobs/{kind}/{job}/stop", order, (*visit).stopJob},
		{post, "/objects/jobs/{kind}/{job}/stop", order, (*visit).stopJob},

		{get, "/check", look, (*visit).showCheck},
		{post, "/check", order, (*visit).startCheck},
		{get, "/part/check", look, (*visit).checkPart},
		{get, "/configuration", look, (*visit).configuration},

		{get, "/sign-in", "", (*visit).showSignIn},
		{post, "/sign-in", "", (*visit).signIn},
		{get, "/sign-in/start", "", (*visit).startSignIn},
		{get, callbackPath, "", (*visit).finishSignIn},
		{get, "/sign-out", look, (*visit).showSignOut},
		{post, "/sign-out", look, (*visit).signOut},
	}
}

// A navigationEntry is a link at the top of each page.
type navigationEntry struct{ path, name string }

// navigation contains the links at the top of each page.
var navigation = []navigationEntry{
	{"/", "Overview"},
	{"/mailboxes", "Mailboxes"},
	{"/find", "Find"},
	{"/dead-letters", "Dead letters"},
	{"/subscriptions", "Subscriptions"},
	{"/watches", "Watches"},
	{"/broker", "Broker"},
	{"/objects", "Objects"},
	{"/check", "Check"},
	{"/configuration", "Configuration"},
}
