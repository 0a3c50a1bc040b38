// Package conformance runs the suites of other projects on the emulator of Service Bus:
//
//   - gocloud.dev, the tests of its package azuresb, which the script run executes without changes
//   - Dapr, the conformance tests of its publish-subscribe components, with their settings
//
// The script run, which `make conformance-pubsub` calls, starts the emulator for them. go.mod pins
// their versions.
package conformance

import _ "gocloud.dev/pubsub/azuresb"
