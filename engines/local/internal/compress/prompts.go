package compress

// Prompts ask for notes, by the kind of task (CacheNotes, appendix B.1).
var Prompts = map[string]string{
	"qa": "Before I give you the question, imagine you are a student memorizing this material according to the task you will have to perform. " +
		"Repeat the context concisely yet comprehensively to aid memorization, preserving all critical details and creating a cheat sheet. " +
		"Once done, I will give you the question.",
	"summary": "Before solving the summarization task, imagine you are a student memorizing this material according to the task. " +
		"Repeat the context concisely yet comprehensively, preserve all key details, and create a cheat sheet. " +
		"Once done, I will prompt you to solve the task.",
	"examples": "Before I give you the new question, imagine you are a student memorizing this material according to the task that you will have to perform. " +
		"Reason about the given examples and the expected output, ensuring you preserve all critical details and create a cheat sheet covering the entire context. " +
		"Once you have done that, I give you the new question.",
	"counting": "Before solving the counting task, imagine you are a student memorizing this material according to the task that you will have to perform. " +
		"Ensure you preserve all critical details to solve the task and create a cheat sheet covering the entire context. " +
		"Once you have done that, I will prompt you to solve the task.",
	"code": "Before solving the code completion task, imagine you are a student memorizing this material according to the task that you will have to perform. " +
		"Ensure you preserve all critical details to solve the task and create a cheat sheet covering the entire context. " +
		"Once you have done that, I will prompt you to solve the code completion task.",
}

// Repeat asks for the text itself (KVzip).
const Repeat = "Repeat the previous context exactly."
