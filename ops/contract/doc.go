// Package contract holds the published OpenAPI document against what does not
// know this repository: an independent validator, and the clients that common
// generators make of it, run against the live service. It is a module of its own
// so that none of that is a dependency of the service.
package contract
