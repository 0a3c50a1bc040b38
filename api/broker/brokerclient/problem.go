package brokerclient

import "github.com/messagehub/messagehub/api/hubclient"

// A Problem is the response of a hub that refuses a request.
type Problem = hubclient.Problem //nolint:errname // problem is the word of RFC 9457

// A Fault describes an error at one position in the body of a request.
type Fault = hubclient.Fault
