// Package azuretemplate writes what a hub needs on Azure, as [deployment.Table] has it, in the forms
// that Azure takes: a template in JSON (ARM), the same template in Bicep, and a script of the Azure
// CLI. It also writes the files of deploy/azure for the default settings.
//
// A template is built once, as a model (model.go, expr.go), and written twice (arm.go, bicep.go), so
// that what is tested of the JSON holds for the Bicep as well.
//
// It promises that the same table gives the same bytes, that a template names only parameters and
// resources that it has, and that no secret is written. It makes no request: whether Azure accepts a
// template is for az deployment group validate.
package azuretemplate
