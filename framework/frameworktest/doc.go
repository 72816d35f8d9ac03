// Package frameworktest is a program that retrieves documents and asks the model of a framework, to play the script of package
// conversationtest. What an adapter's test adds is its framework's messages:
//
//	frameworktest.Run(t, "eino", func(pilot *contextpilot.Pilot, scope contextpilot.Scope, replace bool) frameworktest.Ask {
//		model := eino.ChatModel(pilot, fake{}, eino.WithScope(scope)) // fake calls frameworktest.Arrive
//		return func(ctx context.Context, messages []conversationtest.Message) error {
//			_, err := model.Generate(ctx, toEino(messages))
//			return err
//		}
//	})
package frameworktest
