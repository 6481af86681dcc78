// The widget's own words, in the language of the visitor's browser.
export type Words = {
  back: (time: string) => string; away: string; person: string; atOnce: string; soon: string; email: string; emailIssue: string; close: string; messages: string; writing: string; asked: string;
  leave: string; answerTo: string; write: string; send: string; tooLong: (n: number) => string; askPerson: string; you: string; bot: string; aPerson: string; again: string;
  unreachable: string; gone: string; connecting: string; tooMuch: (seconds: number) => string; notSent: string; moment: string; alone: string;
};

const languages: Record<string, Words> = {
  en: {
    back: (t) => `People are back ${t}`, away: "People are away", person: "A person answers you here", atOnce: "Answers at once", soon: "We answer as soon as we can", email: "Your email address",
    emailIssue: "Please enter an email address such as ada@example.com.", close: "Close", messages: "Messages", writing: "An answer is being written", asked: "We have asked a person. The answer appears here.", leave: "Leave my address",
    answerTo: "We answer here, or to", write: "Write a message", send: "Send", tooLong: (n) => `${n} characters too many`, askPerson: "A person, please", you: "You", bot: "Answer", aPerson: "A person", again: "Send again",
    unreachable: "The server cannot be reached.", gone: "This chat is not available.", connecting: "Connecting again…", tooMuch: (s) => `That was too much at once. Try again ${s ? `in ${s} s` : "later"}.`, notSent: "Not sent: the server cannot be reached.",
    moment: "One moment…", alone: "This chat belongs to a website, and opens there.",
  },
  de: {
    back: (t) => `Wieder für Sie da: ${t}`, away: "Gerade ist niemand da", person: "Hier antwortet Ihnen ein Mensch", atOnce: "Antwortet sofort", soon: "Wir antworten so bald wie möglich", email: "Ihre E-Mail-Adresse",
    emailIssue: "Bitte geben Sie eine E-Mail-Adresse wie ada@example.com ein.", close: "Schließen", messages: "Nachrichten", writing: "Eine Antwort wird geschrieben", asked: "Wir haben jemanden gefragt. Die Antwort erscheint hier.", leave: "Adresse hinterlassen",
    answerTo: "Wir antworten hier oder an", write: "Nachricht schreiben", send: "Senden", tooLong: (n) => `${n} Zeichen zu viel`, askPerson: "Bitte ein Mensch", you: "Sie", bot: "Antwort", aPerson: "Ein Mensch", again: "Noch einmal senden",
    unreachable: "Der Server ist nicht erreichbar.", gone: "Dieser Chat ist nicht verfügbar.", connecting: "Verbindung wird wiederhergestellt…", tooMuch: (s) => `Das war zu viel auf einmal. Versuchen Sie es ${s ? `in ${s} s` : "später"} noch einmal.`, notSent: "Nicht gesendet: Der Server ist nicht erreichbar.",
    moment: "Einen Moment…", alone: "Dieser Chat gehört zu einer Website und öffnet sich dort.",
  },
  fr: {
    back: (t) => `De retour ${t}`, away: "Personne n’est là pour le moment", person: "Une personne vous répond ici", atOnce: "Répond tout de suite", soon: "Nous répondons dès que possible", email: "Votre adresse e-mail",
    emailIssue: "Saisissez une adresse e-mail comme ada@example.com.", close: "Fermer", messages: "Messages", writing: "Une réponse est en cours de rédaction", asked: "Nous avons prévenu une personne. La réponse apparaîtra ici.", leave: "Laisser mon adresse",
    answerTo: "Nous répondons ici, ou à", write: "Écrire un message", send: "Envoyer", tooLong: (n) => `${n} caractères en trop`, askPerson: "Une personne, s’il vous plaît", you: "Vous", bot: "Réponse", aPerson: "Une personne", again: "Renvoyer",
    unreachable: "Le serveur est injoignable.", gone: "Ce chat n’est pas disponible.", connecting: "Reconnexion…", tooMuch: (s) => `Trop de messages à la fois. Réessayez ${s ? `dans ${s} s` : "plus tard"}.`, notSent: "Non envoyé : le serveur est injoignable.",
    moment: "Un instant…", alone: "Ce chat appartient à un site web et s’ouvre là-bas.",
  },
  es: {
    back: (t) => `Volvemos ${t}`, away: "Ahora no hay nadie", person: "Le responde una persona", atOnce: "Responde al momento", soon: "Respondemos lo antes posible", email: "Su correo electrónico",
    emailIssue: "Escriba una dirección de correo como ada@example.com.", close: "Cerrar", messages: "Mensajes", writing: "Se está escribiendo una respuesta", asked: "Hemos avisado a una persona. La respuesta aparecerá aquí.", leave: "Dejar mi dirección",
    answerTo: "Respondemos aquí o a", write: "Escriba un mensaje", send: "Enviar", tooLong: (n) => `Sobran ${n} caracteres`, askPerson: "Una persona, por favor", you: "Usted", bot: "Respuesta", aPerson: "Una persona", again: "Enviar de nuevo",
    unreachable: "No se puede conectar con el servidor.", gone: "Este chat no está disponible.", connecting: "Conectando de nuevo…", tooMuch: (s) => `Demasiados mensajes a la vez. Inténtelo ${s ? `en ${s} s` : "más tarde"}.`, notSent: "No enviado: no se puede conectar con el servidor.",
    moment: "Un momento…", alone: "Este chat pertenece a un sitio web y se abre allí.",
  },
  it: {
    back: (t) => `Torniamo ${t}`, away: "Al momento non c’è nessuno", person: "Qui le risponde una persona", atOnce: "Risponde subito", soon: "Rispondiamo appena possibile", email: "Il suo indirizzo e-mail",
    emailIssue: "Inserisca un indirizzo e-mail come ada@example.com.", close: "Chiudi", messages: "Messaggi", writing: "È in arrivo una risposta", asked: "Abbiamo avvisato una persona. La risposta apparirà qui.", leave: "Lascia il mio indirizzo",
    answerTo: "Rispondiamo qui o a", write: "Scriva un messaggio", send: "Invia", tooLong: (n) => `${n} caratteri di troppo`, askPerson: "Una persona, per favore", you: "Lei", bot: "Risposta", aPerson: "Una persona", again: "Invia di nuovo",
    unreachable: "Il server non è raggiungibile.", gone: "Questa chat non è disponibile.", connecting: "Nuova connessione…", tooMuch: (s) => `Troppi messaggi in una volta. Riprovi ${s ? `tra ${s} s` : "più tardi"}.`, notSent: "Non inviato: il server non è raggiungibile.",
    moment: "Un momento…", alone: "Questa chat appartiene a un sito web e si apre lì.",
  },
  pt: {
    back: (t) => `Voltamos ${t}`, away: "De momento não há ninguém", person: "Uma pessoa responde aqui", atOnce: "Responde na hora", soon: "Respondemos assim que possível", email: "O seu e-mail",
    emailIssue: "Introduza um e-mail como ada@example.com.", close: "Fechar", messages: "Mensagens", writing: "Uma resposta está a ser escrita", asked: "Avisámos uma pessoa. A resposta aparece aqui.", leave: "Deixar o meu e-mail",
    answerTo: "Respondemos aqui ou para", write: "Escreva uma mensagem", send: "Enviar", tooLong: (n) => `${n} caracteres a mais`, askPerson: "Uma pessoa, por favor", you: "Você", bot: "Resposta", aPerson: "Uma pessoa", again: "Enviar de novo",
    unreachable: "Não é possível contactar o servidor.", gone: "Este chat não está disponível.", connecting: "A ligar de novo…", tooMuch: (s) => `Demasiadas mensagens de uma vez. Tente de novo ${s ? `em ${s} s` : "mais tarde"}.`, notSent: "Não enviado: não é possível contactar o servidor.",
    moment: "Um momento…", alone: "Este chat pertence a um site e abre-se lá.",
  },
  nl: {
    back: (t) => `We zijn er weer ${t}`, away: "Er is nu niemand", person: "Een medewerker antwoordt hier", atOnce: "Antwoordt meteen", soon: "We antwoorden zo snel mogelijk", email: "Uw e-mailadres",
    emailIssue: "Vul een e-mailadres in, zoals ada@example.com.", close: "Sluiten", messages: "Berichten", writing: "Er wordt een antwoord geschreven", asked: "We hebben een medewerker gevraagd. Het antwoord verschijnt hier.", leave: "Mijn adres achterlaten",
    answerTo: "We antwoorden hier, of naar", write: "Schrijf een bericht", send: "Versturen", tooLong: (n) => `${n} tekens te veel`, askPerson: "Graag een medewerker", you: "U", bot: "Antwoord", aPerson: "Medewerker", again: "Opnieuw versturen",
    unreachable: "De server is niet bereikbaar.", gone: "Deze chat is niet beschikbaar.", connecting: "Opnieuw verbinden…", tooMuch: (s) => `Dat was te veel tegelijk. Probeer het ${s ? `over ${s} s` : "later"} opnieuw.`, notSent: "Niet verstuurd: de server is niet bereikbaar.",
    moment: "Een ogenblik…", alone: "Deze chat hoort bij een website en opent daar.",
  },
};

/** The language of the words. */
export const language = navigator.languages.map((l) => l.slice(0, 2)).find((l) => Object.hasOwn(languages, l)) ?? "en";
export const words = languages[language];
