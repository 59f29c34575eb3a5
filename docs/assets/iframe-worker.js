// Browsers give no workers to pages opened from disk. There, a hidden frame does the work of the search.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const load = source => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: new URL(source, location.href), onload: resolve, onerror: reject });
        inside.document.body.append(script);
      });
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      inside.importScripts = (...sources) => sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.ready = load(url).catch(error => this.dispatchEvent(new ErrorEvent("error", { error })));
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
